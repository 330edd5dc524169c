"""Asks a provider in a protocol of its own, without conversion: what the client sent is what it gets.

litellm's own functions for these protocols are not used: they import packages that litellm does not require,
and they drop fields, such as `thinking`, of models that they do not know. litellm prices the answers.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx

from pytest_super.model.litellm_errors import is_no_model_api
from pytest_super.model.protocols.registry import COMMON
from pytest_super.model.provider import NotSpokenError
from pytest_super.model.server_sent_events import events_of
from pytest_super.model.streamed_answer import denial

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from pytest_super.model.protocols.protocol import Body, Event, Request, WireProtocol

# Statuses of a server that has no such path.
NO_PATH = (404, 405)
COUNT_SECONDS = 30.0


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
        is_own = protocol is not COMMON and protocol.provider == self._provider
        return is_own and protocol.name not in self._unspoken

    async def count(self, protocol: WireProtocol, request: Request, passed: Mapping[str, str]) -> Body | None:
        """The provider's own count of a request; None if it says nothing that helps."""
        url = protocol.count_address(self._base(protocol), self._name)
        if not url or not self.speaks(protocol):
            return None
        try:
            response = await self._client.post(
                url,
                headers=self._headers(protocol, passed),
                json=protocol.count_content(request, self._name),
                timeout=COUNT_SECONDS,
            )
            answer = response.json() if response.status_code == 200 else None
        except (httpx.HTTPError, ValueError):
            return None
        return answer if isinstance(answer, dict) else None

    @asynccontextmanager
    async def stream(
        self, protocol: WireProtocol, request: Request, passed: Mapping[str, str]
    ) -> AsyncIterator[AsyncIterator[list[Event]]]:
        """The events of the answer. Raises NotSpokenError, once, and httpx's errors."""
        url = protocol.address(self._base(protocol), self._name, is_stream=True)
        headers = self._headers(protocol, passed)
        body = protocol.content(request, self._name, is_stream=True)
        async with self._client.stream("POST", url, headers=headers, json=body) as response:
            if response.status_code >= 400:
                error = await denial(response)
                if response.status_code in NO_PATH and is_no_model_api(response):
                    self._unspoken.add(protocol.name)
                    raise NotSpokenError
                raise error
            yield events_of(response)

    def _base(self, protocol: WireProtocol) -> str:
        given = self._parameters.get("api_base") or self._parameters.get("base_url")
        return str(given or first(protocol.base_variables) or protocol.base_url).rstrip("/")

    def _headers(self, protocol: WireProtocol, passed: Mapping[str, str]) -> dict[str, str]:
        key = self._parameters.get("api_key") or first(protocol.key_variables)
        return protocol.headers(key) | dict(passed) | (self._parameters.get("extra_headers") or {})


def first(names: tuple[str, ...]) -> str:
    """The value of the first of these environment variables that is set, "" if none is."""
    return next(filter(None, map(os.environ.get, names)), "")
