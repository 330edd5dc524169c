"""Asks for a stream where litellm asks for a whole answer, and gives litellm the whole that came of it.

So litellm writes the requests and reads the answers of protocols that are not OpenAI's. Its own streams of
them cost 0.35 ms of the event loop a token, and take some answers that broke off for whole.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx

from pytest_super.model.protocols.gemini import stream as gemini_events
from pytest_super.model.protocols.messages import Messages
from pytest_super.model.server_sent_events import events_of
from pytest_super.model.streamed_answer import Relaying, denial, limited, read_answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from pytest_super.model.protocols.protocol import Event, StreamedProtocol

# Of these providers all models, or those with such names.
NAMES: dict[str, tuple[str, ...]] = {
    "anthropic": ("",),
    "gemini": ("",),
    "vertex_ai": ("gemini", "claude"),
}
MESSAGES = Messages()
# How requests for a whole answer end: of Gemini, and of Claude at Vertex.
GENERATE, PREDICT = ":generateContent", ":rawPredict"
# litellm states others in its requests.
NO_TIMEOUT = httpx.Timeout(None).as_dict()


def streaming_client(provider: str, model: str, *, silence: float | None, secrets: Iterable[str]) -> Any:
    """The client for litellm's calls of this model; None if its streams cannot be read here.

    `silence`, in seconds: see Relaying.patience; for other requests than for answers, see `limited`.
    raises ModelCallError, which litellm puts into exceptions of its own.
    """
    if provider not in NAMES or not model.rpartition("/")[2].startswith(NAMES[provider]):
        return None
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    # litellm takes none of another class.
    handler = AsyncHTTPHandler()
    handler.client = StreamingClient(model, silence, tuple(secrets))
    return handler


class StreamingClient(httpx.AsyncClient):
    """Belongs to one event loop."""

    def __init__(self, model: str, silence: float | None, secrets: tuple[str, ...]) -> None:
        # The gateway's rate limiter limits the connections, and the reader of an answer its time.
        limits = httpx.Limits(max_connections=None)
        super().__init__(timeout=None, limits=limits, follow_redirects=True)
        self._model, self._silence, self._secrets = model, silence, secrets

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        found = as_stream(request)
        if found is None:
            return await self._send_other(request, options)
        streamed, protocol = found
        body = await read_answer(
            self._events(streamed),
            Relaying(protocol, None),
            model=self._model,
            silence=self._silence,
            secrets=self._secrets,
        )
        return httpx.Response(200, json=body, request=request)

    async def _send_other(self, request: httpx.Request, options: dict[str, Any]) -> httpx.Response:
        """Such as a question for what Gemini has cached."""
        async with limited(self._model, self._silence):
            return await super().send(request, **options)

    @asynccontextmanager
    async def _events(self, request: httpx.Request) -> AsyncIterator[AsyncIterator[list[Event]]]:
        response = await super().send(request, stream=True)
        try:
            if not response.is_success:
                raise await denial(response)
            yield events_of(response)
        finally:
            await response.aclose()


def as_stream(request: httpx.Request) -> tuple[httpx.Request, StreamedProtocol] | None:
    """The request for the same answer as a stream, and what its events are; None for any other request."""
    # Not `path`, in which nothing is escaped.
    path, _, query = request.url.raw_path.decode("ascii").partition("?")
    query = query and f"?{query}"
    if path.endswith(GENERATE):
        # Otherwise the events come as one JSON list.
        query = "?alt=sse" + query.replace("?", "&", 1)
        target = path.removesuffix(GENERATE) + ":streamGenerateContent" + query
        return changed(request, target, request.content), gemini_events
    if path.endswith(PREDICT) and "/anthropic/" in path:
        path = path.removesuffix(PREDICT) + ":streamRawPredict"
    elif not path.endswith(MESSAGES.routes[0].path):
        return None
    content = json.dumps({**json.loads(request.content), "stream": True}, ensure_ascii=False).encode()
    return changed(request, path + query, content), MESSAGES


def changed(request: httpx.Request, target: str, content: bytes) -> httpx.Request:
    url = request.url.copy_with(raw_path=target.encode())
    headers = {name: value for name, value in request.headers.items() if name != "content-length"}
    extensions = {**request.extensions, "timeout": NO_TIMEOUT}
    return httpx.Request("POST", url, headers=headers, content=content, extensions=extensions)
