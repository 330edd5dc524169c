"""Models of any provider, through litellm."""

from __future__ import annotations

import asyncio
import os
import warnings
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pytest_super.model.answer_size import limit_answers
from pytest_super.model.completion import NO_USAGE, Usage
from pytest_super.model.failures import Failure, ModelCallError
from pytest_super.model.json_values import plain, texts
from pytest_super.model.litellm_errors import explain
from pytest_super.model.protocols.chat import accepted
from pytest_super.model.protocols.protocol import Tokens
from pytest_super.model.provider import Answer, ModelProvider
from pytest_super.model.redaction import secrets_in
from pytest_super.model.token_estimate import LENGTHS, entry_of, estimate_tokens, max_usage, prices_of
from pytest_super.model.upstream import BrokenStreamError, Upstream
from pytest_super.model.usage import cached_tokens, is_plausible, priced, register_prices, stated_tokens

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pytest_super.model.protocols.protocol import Body, Request, StreamedProtocol, WireProtocol
    from pytest_super.model.provider import Relay
    from pytest_super.model.token_estimate import MaxUsage

TIMEOUT = 600.0
# Its tokenizer comes with litellm; those of other models would be downloaded.
COUNTED_AS = "gpt-4"
# The types with which OpenAI's client says that a parameter was not given.
LEFT_OUT = ("Omit", "NotGiven")
# Contains nothing of the prompt, so that a refusal of it concerns every call.
HARMLESS = {"messages": [{"role": "user", "content": "Say yes."}]}
NO_PROVIDER = "no such provider: name a model as litellm does, PROVIDER/MODEL, such as openai/gpt-4o"


class LitellmProvider(ModelProvider):
    """Asks the model that litellm knows by this name. The constructor imports litellm, which takes seconds.

    `parameters` are the user's, for every call that does not state them itself: OpenAI's, and litellm's own
    such as `api_base`, `input_cost_per_token` and `timeout` (seconds: for a whole chat completion, 600 by
    default; for the silence of a stream, 120).
    """

    def __init__(self, model: str, parameters: Mapping[str, Any] | None = None) -> None:
        self.model = model
        self.parameters = dict(parameters or {})
        timeout = self.parameters.pop("timeout", None)
        self.timeout = TIMEOUT if timeout is None else float(timeout)
        self._litellm = import_litellm()
        found = find_provider(self._litellm, model)
        self._is_known = found is not None
        self._would_run_tools = would_run_tools()
        self.takes_seed = supports(self._litellm, model, "seed")
        # litellm's own look-up asks the servers of some providers.
        self._prices = prices_of(entry_of(model, self._litellm.model_cost), self.parameters)
        self._keeps_length = any(supports(self._litellm, model, name) for name in LENGTHS)
        register_prices(self._litellm, model, self.parameters)
        silence = None if timeout is None else self.timeout
        self._upstream = Upstream(*(found or ("", model)), self.parameters, silence)

    def max_usage(self, request: Request) -> MaxUsage:
        """Uses the highest of the model's prices that litellm or the user knows."""
        merged = {**self.parameters, **request}
        # litellm drops a parameter that the provider does not support, so it limits nothing.
        dropped = () if self._keeps_length else LENGTHS
        kept = {name: value for name, value in merged.items() if name not in dropped}
        return max_usage(kept, self._prices)

    async def complete(self, request: Request, *, task: str, call: int) -> Answer:  # noqa: ARG002
        """One call; neither the task nor the number of the call makes a difference.

        Raises ModelCallError.
        """
        asked = accepted(request)
        if not self._is_known:
            raise ModelCallError(Failure.FATAL, f"{self.model}: {NO_PROVIDER}")
        try:
            return await self._ask(asked)
        except ModelCallError as error:
            raise await self._decided(error, partial(self._ask, HARMLESS)) from None

    def speaks(self, protocol: WireProtocol) -> bool:
        return self._upstream.speaks(protocol)

    async def stream(
        self, protocol: StreamedProtocol, request: Request, beta: str, relay: Relay | None
    ) -> Answer:
        async def ask_harmless() -> Answer:
            # With what the user chose for every call, and nothing that this program did.
            harmless = protocol.with_defaults(protocol.harmless, self.parameters)
            return self._streamed(protocol, harmless, await self._upstream.ask(protocol, harmless))

        try:
            return self._streamed(protocol, request, await self._upstream.ask(protocol, request, beta, relay))
        except BrokenStreamError as broken:
            said = [event.get("delta") for event in broken.events]
            tokens = Tokens(estimate_tokens(request), estimate_tokens(said))
            broken.usage = priced(self._litellm, self.model, tokens)
            raise
        except ModelCallError as error:
            raise await self._decided(error, ask_harmless) from None

    def _streamed(self, protocol: StreamedProtocol, request: Request, body: Body) -> Answer:
        stated = protocol.tokens(body) if is_plausible(body) else None
        tokens = stated or Tokens(estimate_tokens(request), estimate_tokens(body))
        return Answer(
            body=body,
            usage=priced(self._litellm, self.model, tokens),
            is_counted=stated is None,
            model=text_in(body, "model") or self.model,
            fingerprint=None,
        )

    async def count_tokens(self, request: Request, beta: str) -> Body | None:
        return await self._upstream.count(request, beta)

    async def _decided(
        self, denied: ModelCallError, ask_harmless: Callable[[], Awaitable[Answer]]
    ) -> ModelCallError:
        """For DENIED: FATAL if the provider denies a harmless question as well, otherwise REFUSED.

        A prompt can provoke a 400, a 403 by moderation or a 404 by a router; it must not stop the run.
        """
        if denied.failure is not Failure.DENIED:
            return denied
        usage = NO_USAGE
        try:
            usage = (await ask_harmless()).usage
        except ModelCallError as other:
            if other.failure in (Failure.DENIED, Failure.FATAL):
                return ModelCallError(Failure.FATAL, denied.message)
        return ModelCallError(Failure.REFUSED, denied.message, usage=usage)

    async def _ask(self, asked: Request) -> Answer:
        merged, sent = {**self.parameters, **asked}, []
        settings = self._settings(before_sending=lambda _: sent.append(True))
        try:
            # litellm's own limit applies to each read, so an answer that trickles would never end.
            async with asyncio.timeout(self.timeout):
                # The settings win, because a user's `num_retries` would multiply the gateway's retries.
                response = await self._litellm.acompletion(**{**merged, **settings})
                return await self._answer(merged, response)
        except ModelCallError:
            raise
        except TimeoutError:
            text = f"{self.model}: no answer within {self.timeout:g} s"
            raise ModelCallError(Failure.TRANSIENT, text) from None
        except Exception as error:
            # `from None`: a traceback would show the secrets that `explain` removes.
            raise explain(error, self.model, secrets_in(self.parameters), is_sent=bool(sent)) from None

    def _settings(self, before_sending: Callable[[Any], None]) -> dict[str, Any]:
        settings = {"model": self.model, "timeout": self.timeout, "drop_params": True}
        # litellm calls its logger with the finished request, just before it is sent.
        settings["logger_fn"] = before_sending
        # The gateway retries. Retrying here as well would multiply the attempts.
        settings |= {"num_retries": 0, "max_retries": 0, "stream": False}
        if self._would_run_tools:
            settings["_skip_mcp_handler"] = True
        return settings

    async def _answer(self, asked: Request, response: Any) -> Answer:
        body = plain(response.model_dump(warnings=False))
        stated = stated_tokens(body)
        if not has_message(body):
            text = f"{self.model}: the answer has no message"
            usage = self._usage(response, *stated) if stated else NO_USAGE
            raise ModelCallError(Failure.TRANSIENT, text, usage=usage)
        if stated:
            usage = self._usage(response, *stated, cached_tokens(body))
        else:
            # In a thread, because counting a long prompt takes a second.
            prompt, completion = await asyncio.to_thread(self._count, asked, body)
            # Without the response, because litellm's sum for it uses the figures that are missing or
            # implausible.
            usage = self._usage(None, prompt, completion)
            counted = {"prompt_tokens": prompt, "completion_tokens": completion}
            body["usage"] = {**counted, "total_tokens": prompt + completion}
        return Answer(
            body=body,
            usage=usage,
            is_counted=stated is None,
            model=text_in(body, "model") or self.model,
            fingerprint=text_in(body, "system_fingerprint"),
        )

    def _count(self, asked: Request, body: dict[str, Any]) -> tuple[int, int]:
        """The tokens of the prompt and of the answer."""
        message = body["choices"][0]["message"]
        said = [message.get("content"), message.get("tool_calls"), message.get("reasoning_content")]
        completion = sum(self._litellm.token_counter(COUNTED_AS, text=text) for text in texts(said))
        messages, tools = asked["messages"], asked.get("tools")
        try:
            prompt = self._litellm.token_counter(COUNTED_AS, messages=messages, tools=tools)
        except Exception:
            # It does not support every kind of part that providers accept.
            prompt = estimate_tokens([messages, tools])
        return prompt, completion

    def _usage(self, response: Any, prompt: int, completion: int, cached: int = 0) -> Usage:
        usage = priced(self._litellm, self.model, Tokens(prompt, completion, cached))
        # litellm's own sum for a response includes every discount.
        hidden = getattr(response, "_hidden_params", None) or {}
        cost = hidden.get("response_cost")
        return replace(usage, cost_usd=float(cost)) if cost else usage


def import_litellm() -> Any:
    """litellm, configured to print nothing and to contact only the provider."""
    # Otherwise it would download its table of prices.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm
    skip_transformation()
    limit_answers()
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    # These warnings are about litellm's own types, and about malformed answers, which are checked here.
    warnings.filterwarnings("ignore", module=r"(litellm|openai|pydantic)\b")
    return litellm


def skip_transformation() -> None:
    """Make OpenAI's client send requests unchanged.

    Version 2 walks through every message of every call to replace Python's own values by JSON's: 90 ms with
    400 messages, on the one event loop that all trials share. Our requests came as JSON.
    """
    from openai.resources.chat.completions import completions

    async def unchanged(body: Any, _expected: Any) -> Any:
        # If fields beyond OpenAI's are added to a body, nothing later removes the omitted ones from it.
        return {name: value for name, value in body.items() if type(value).__name__ not in LEFT_OUT}

    if hasattr(completions, "async_maybe_transform"):
        completions.async_maybe_transform = unchanged


def would_run_tools() -> bool:
    """Whether this version of litellm looks for tools that it could run itself.

    An agent's tools belong to the agent. For that, version 1.106 imports the package `mcp` in every call with
    tools, although it does not require it. A version without the module would pass the setting on.
    """
    try:
        return find_spec("litellm.responses.mcp.chat_completions_handler") is not None
    except ModuleNotFoundError:
        return False


def find_provider(litellm: Any, model: str) -> tuple[str, str] | None:
    """The provider that litellm finds in the model's name, and the name that it has there."""
    try:
        name, provider, *_ = litellm.get_llm_provider(model=model)
    except Exception:
        return None
    return provider, name


def supports(litellm: Any, model: str, parameter: str) -> bool:
    """Whether the provider supports the parameter, as far as litellm knows without asking it."""
    try:
        return parameter in (litellm.get_supported_openai_params(model=model) or ())
    except Exception:
        # An unknown provider; the first call reports that better.
        return False


def has_message(body: dict[str, Any]) -> bool:
    """Whether the answer has a message; its content may be missing."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return isinstance(message, dict) and isinstance(message.get("content"), str | None)


def text_in(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    return value if isinstance(value, str) else None
