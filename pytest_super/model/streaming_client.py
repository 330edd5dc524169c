"""Asks for a stream where litellm asks for a whole answer, and gives litellm the whole that came of it.

So litellm writes the requests and reads the answers of protocols that are not OpenAI's. Its own streams of
them cost 0.35 ms of the event loop a token, and take some answers that broke off for whole.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx

from pytest_super.model.failures import Failure, ModelCallError
from pytest_super.model.protocols import gemini_events
from pytest_super.model.protocols.messages import Messages
from pytest_super.model.server_sent_events import events_of
from pytest_super.model.streamed_answer import WHOLE_SECONDS, Relaying, denial, read_answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from pytest_super.model.protocols.protocol import Event, StreamedProtocol

# How their requests for a whole answer end.
MESSAGES, GENERATE = "/messages", ":generateContent"
NO_TIMEOUT = httpx.Timeout(None).as_dict()


def streaming_client(provider: str, model: str, *, silence: float | None, secrets: Iterable[str]) -> Any:
    """The client for litellm's calls of this provider; None if litellm takes none, or streams are read above.

    `silence`, in seconds: see Relaying.patience; other requests end after as much, by default WHOLE_SECONDS.
    `model` is for messages. The client raises ModelCallError, which litellm puts into exceptions of its own.
    """
    if provider not in STREAMS:
        return None
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    # litellm takes none of another class.
    handler = AsyncHTTPHandler()
    handler.client = StreamingClient(provider, model, silence, tuple(secrets))
    return handler


class StreamingClient(httpx.AsyncClient):
    """Belongs to one event loop."""

    def __init__(self, provider: str, model: str, silence: float | None, secrets: tuple[str, ...]) -> None:
        # The gateway's rate limiter limits the connections, and the reader of an answer its time.
        limits = httpx.Limits(max_connections=None)
        super().__init__(timeout=None, limits=limits, follow_redirects=True)
        self._as_stream, self._protocol = STREAMS[provider]
        self._model, self._silence, self._secrets = model, silence, secrets

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        streamed = self._as_stream(request)
        if streamed is None:
            return await self._send_other(request, options)
        body = await read_answer(
            self._events(streamed),
            Relaying(self._protocol, None),
            model=self._model,
            silence=self._silence,
            secrets=self._secrets,
        )
        return httpx.Response(200, json=body, request=request)

    async def _send_other(self, request: httpx.Request, options: dict[str, Any]) -> httpx.Response:
        """Such as a question for what Gemini has cached."""
        seconds = WHOLE_SECONDS if self._silence is None else self._silence
        try:
            async with asyncio.timeout(seconds):
                return await super().send(request, **options)
        except TimeoutError:
            text = f"{self._model}: no answer within {seconds:g} s"
            raise ModelCallError(Failure.TRANSIENT, text) from None

    @asynccontextmanager
    async def _events(self, request: httpx.Request) -> AsyncIterator[AsyncIterator[list[Event]]]:
        response = await super().send(request, stream=True)
        try:
            if not response.is_success:
                raise await denial(response)
            yield events_of(response)
        finally:
            await response.aclose()


def messages_stream(request: httpx.Request) -> httpx.Request | None:
    """The request of Anthropic's Messages, for a stream; None for what is no such request."""
    if not request.url.path.endswith(MESSAGES):
        return None
    content = json.dumps({**json.loads(request.content), "stream": True}, ensure_ascii=False).encode()
    return changed(request, request.url, content)


def gemini_stream(request: httpx.Request) -> httpx.Request | None:
    """The request of Gemini's `generateContent`, for a stream; None for what is no such request."""
    # Not `path`, in which nothing is escaped.
    path, _, query = request.url.raw_path.decode("ascii").partition("?")
    if not path.endswith(GENERATE):
        return None
    # Otherwise the events come as one JSON list.
    target = path.removesuffix(GENERATE) + ":streamGenerateContent?alt=sse" + (query and f"&{query}")
    return changed(request, request.url.copy_with(raw_path=target.encode()), request.content)


def changed(request: httpx.Request, url: httpx.URL, content: bytes) -> httpx.Request:
    headers = {name: value for name, value in request.headers.items() if name != "content-length"}
    extensions = {**request.extensions, "timeout": NO_TIMEOUT}
    return httpx.Request("POST", url, headers=headers, content=content, extensions=extensions)


STREAMS: dict[str, tuple[Callable[[httpx.Request], httpx.Request | None], StreamedProtocol]] = {
    "anthropic": (messages_stream, Messages()),
    "gemini": (gemini_stream, gemini_events),
}
