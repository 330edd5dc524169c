"""Asks for chat completions through litellm, as a stream where that can be read here."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pytest_super.model.failures import Failure, ModelCallError
from pytest_super.model.litellm_errors import causes, explain
from pytest_super.model.litellm_setup import would_run_tools
from pytest_super.model.protocols.registry import COMMON
from pytest_super.model.redaction import secrets_in
from pytest_super.model.server_sent_events import events_of
from pytest_super.model.streamed_answer import LONGEST_STREAM, Relaying, limited, read_answer
from pytest_super.model.streaming_client import streaming_client
from pytest_super.model.usage import cost_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from pytest_super.model.protocols.protocol import Event, Request
    from pytest_super.model.provider import Relay

# Those that speak as OpenAI does and state the usage of a stream. litellm asks them, and their responses are
# read here: its own streams cost 0.35 ms of the event loop a token, and fail after 100 equal chunks.
STREAMED = """
    openai azure custom_openai dashscope deepseek github groq hosted_vllm litellm_proxy lm_studio moonshot
    nebius openrouter sambanova together_ai xai zai
"""
# In a refusal: OpenAI lets some models answer as a stream to verified organizations alone, and some servers
# know no `stream_options`.
STREAM = re.compile(r"\bstream", re.IGNORECASE)


class LitellmChat:
    """A provider's chat completions. Belongs to one event loop."""

    def __init__(
        self, litellm: Any, model: str, provider: str, parameters: Mapping[str, Any], timeout: float | None
    ) -> None:
        """`timeout`, in seconds: for the silence of a stream, or for a whole answer."""
        self.is_streamed = provider in STREAMED.split()
        """Whether its chunks can be relayed as they come."""
        self._litellm = litellm
        self._model = model
        self._timeout = timeout
        self._secrets = secrets_in(parameters)
        self._client = streaming_client(provider, model, silence=timeout, secrets=self._secrets)
        self._would_run_tools = would_run_tools()

    async def ask(self, request: Request, relay: Relay | None = None) -> Any:
        """litellm's response, whose chunks have been relayed as they came, if it is streamed.

        `request` has litellm's own parameters, too. Raises ModelCallError: BrokenStreamError if chunks were
        relayed.
        """
        try:
            if self.is_streamed:
                return await self._ask_streamed(request, relay)
            if self._client is not None:
                return await self._acompletion(request, client=self._client)
        except ModelCallError as error:
            if error.failure is not Failure.DENIED or not STREAM.search(error.message):
                raise
        response = await self._ask_whole(request)
        self.is_streamed, self._client = False, None
        return response

    async def _ask_whole(self, request: Request) -> Any:
        # litellm's own limit applies to each read, so an answer that trickles would never end.
        async with limited(self._model, self._timeout) as seconds:
            return await self._acompletion(request, timeout=seconds)

    async def _ask_streamed(self, request: Request, relay: Relay | None) -> Any:
        relaying = Relaying(COMMON, relay)
        body = await read_answer(
            self._stream(request),
            relaying,
            model=self._model,
            silence=self._timeout,
            secrets=self._secrets,
        )
        try:
            # litellm makes the same of a whole answer.
            response = self._litellm.utils.convert_to_model_response_object(
                response_object=body, model_response_object=self._litellm.ModelResponse()
            )
        except Exception as error:
            raise relaying.failed(explain(error, self._model, self._secrets)) from None
        response._hidden_params["response_cost"] = cost_of(self._litellm, self._model, request, response)
        return response

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncIterator[AsyncIterator[list[Event]]]:
        stream = await self._acompletion(
            request, stream=True, stream_options={"include_usage": True}, timeout=LONGEST_STREAM
        )
        response = response_of(stream)
        if response is None:
            # litellm has asked in another way, such as by Responses for a model that knows nothing else.
            yield chunks_of(stream)
            return
        try:
            yield events_of(response)
        finally:
            await response.aclose()

    async def _acompletion(self, request: Request, **settings: Any) -> Any:
        sent: list[bool] = []
        fixed = {"model": self._model, "drop_params": True, "stream": False, **settings}
        # litellm calls its logger with the finished request just before it is sent, and after a failure.
        fixed["logger_fn"] = lambda event: sent.append(event.get("log_event_type") != "post_api_call")
        # The gateway retries. Retrying here as well would multiply the attempts.
        fixed |= {"num_retries": 0, "max_retries": 0}
        if self._would_run_tools:
            fixed["_skip_mcp_handler"] = True
        try:
            return await self._litellm.acompletion(**{**request, **fixed})
        except Exception as error:
            ours = next((cause for cause in causes(error) if isinstance(cause, ModelCallError)), None)
            # `from None`: a traceback would show the secrets that `explain` removes.
            raise ours or explain(error, self._model, self._secrets, is_sent=any(sent)) from None


def response_of(stream: Any) -> Any:
    """The HTTP response below a stream of litellm; None if there is none to be found."""
    below = stream.completion_stream
    # Of OpenAI's client; or the lines of a response, which hold nothing else of it than their generator does.
    lines = getattr(getattr(below, "streaming_response", None), "ag_frame", None)
    response = getattr(below, "response", None) or (lines and lines.f_locals.get("self"))
    return response if hasattr(response, "aiter_bytes") else None


async def chunks_of(stream: Any) -> AsyncIterator[list[Event]]:
    async for chunk in stream:
        yield [chunk.model_dump(exclude_none=True)]
