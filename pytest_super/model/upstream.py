"""Asks a provider in a protocol of its own, without conversion: what the client sent is what it gets.

litellm's own functions for these protocols are not used: they import packages that litellm does not require,
and they drop fields, such as `thinking`, of models that they do not know. litellm prices the answers.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx

from pytest_super.model.api import BETA, COUNT_TOKENS
from pytest_super.model.litellm_errors import is_no_model_api
from pytest_super.model.provider import NotSpokenError
from pytest_super.model.server_sent_events import events_of
from pytest_super.model.streamed_answer import denial

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from pytest_super.model.protocols.protocol import Body, Event, NativeProtocol, Request, WireProtocol

# The one protocol besides chat completions that a provider speaks.
SPOKEN = {"openai": "/v1/responses", "anthropic": "/v1/messages"}
# Statuses of a server that has no such path.
NO_PATH = (404, 405)
COUNT_SECONDS = 30.0
ANTHROPIC_VERSION = "2023-06-01"


class Upstream:
    """A provider's server, in the protocols that it speaks. Belongs to one event loop."""

    def __init__(self, provider: str, model: str, parameters: Mapping[str, Any]) -> None:
        """`model` is its name there.

        `parameters` are the user's, of which `api_base`, `api_key` and `extra_headers` matter here.
        """
        self._provider, self._name = provider, model
        self._parameters = parameters
        # The gateway's rate limiter limits the connections, and the reader of an answer its time.
        self._client = httpx.AsyncClient(timeout=None, limits=httpx.Limits(max_connections=None))
        self._unspoken: set[str] = set()

    def speaks(self, protocol: WireProtocol) -> bool:
        """Whether the provider does, as far as its name and its answers until now say."""
        return SPOKEN.get(self._provider) == protocol.path and protocol.path not in self._unspoken

    async def count(self, request: Request, beta: str) -> Body | None:
        """What Anthropic says to `count_tokens`; None if it says nothing that helps."""
        if self._provider != "anthropic":
            return None
        url = self._address(COUNT_TOKENS)
        try:
            body = self._body(request)
            response = await self._client.post(
                url, headers=self._headers(beta), json=body, timeout=COUNT_SECONDS
            )
            answer = response.json() if response.status_code == 200 else None
        except (httpx.HTTPError, ValueError):
            return None
        return answer if isinstance(answer, dict) else None

    @asynccontextmanager
    async def stream(
        self, protocol: NativeProtocol, request: Request, beta: str
    ) -> AsyncIterator[AsyncIterator[list[Event]]]:
        """The events of the answer. Raises NotSpokenError, once, and httpx's errors."""
        body = {**self._body(request), "stream": True}
        url = self._address(protocol.path)
        async with self._client.stream("POST", url, headers=self._headers(beta), json=body) as response:
            if response.status_code >= 400:
                error = await denial(response)
                if response.status_code in NO_PATH and is_no_model_api(response):
                    self._unspoken.add(protocol.path)
                    raise NotSpokenError
                raise error
            yield events_of(response)

    def _body(self, request: Request) -> Request:
        return {**request, "model": self._name}

    def _address(self, path: str) -> str:
        given = self._parameters.get("api_base") or self._parameters.get("base_url")
        if self._provider == "anthropic":
            base = given or first("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL") or "https://api.anthropic.com"
            return base.rstrip("/").removesuffix("/v1") + path
        base = given or first("OPENAI_BASE_URL", "OPENAI_API_BASE") or "https://api.openai.com/v1"
        return base.rstrip("/") + path.removeprefix("/v1")

    def _headers(self, beta: str) -> dict[str, str]:
        key = self._parameters.get("api_key")
        if self._provider == "anthropic":
            headers = {"anthropic-version": ANTHROPIC_VERSION, "x-api-key": key or first("ANTHROPIC_API_KEY")}
            headers |= {BETA: beta} if beta else {}
        else:
            headers = {"authorization": f"Bearer {key or first('OPENAI_API_KEY')}"}
        return headers | (self._parameters.get("extra_headers") or {})


def first(*names: str) -> str:
    """The value of the first of these environment variables that is set, "" if none is."""
    return next(filter(None, map(os.environ.get, names)), "")
