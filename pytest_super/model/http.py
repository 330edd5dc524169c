"""Asks a provider over HTTP in a protocol that it speaks.

In Responses, Messages and Gemini's protocol the provider gets what the client sent. litellm writes no
request here: it drops fields, such as `thinking`, of models that it does not know.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

from pytest_super.model.explanation import NOWHERE_STATUS, denied, is_no_model_api
from pytest_super.model.failures import Failure, ModelCallError
from pytest_super.model.protocols.common import COMMON
from pytest_super.model.protocols.protocol import Body, Event, Request, Site, WireProtocol, text_of
from pytest_super.model.provider import Asked
from pytest_super.model.streamed_answer import NotSpokenError, Relaying, events_of, limited_bytes, read_answer
from pytest_super.model.token_estimate import prices_in
from pytest_super.redaction import is_secret_name, secrets_in

if TYPE_CHECKING:
    from pytest_super.model.known_model import KnownModel


# Of most, litellm knows the address and the key.
OTHERS = "dashscope deepseek github groq hosted_vllm lm_studio moonshot nebius sambanova together_ai xai zai"
LIKE_OPENAI = {
    **dict.fromkeys(OTHERS.split(), Site()),
    **dict.fromkeys((COMMON.provider, "custom_openai"), COMMON.site),
    "openrouter": Site(
        base_url="https://openrouter.ai/api/v1",
        base_variables=("OPENROUTER_API_BASE",),
        key_variables=("OPENROUTER_API_KEY", "OR_API_KEY"),
        takes_parts=True,
        takes_marks=True,
    ),
    "litellm_proxy": Site(takes_parts=True, takes_marks=True),
}
# litellm's parameters, which the user can state: they are about the call, and no server knows them.
ABOUT_THE_CALL = """
    additional_drop_params allowed_openai_params api_base api_key api_version base_model base_url
    custom_llm_provider drop_params extra_body extra_headers headers max_retries num_retries ssl_verify
    timeout request_timeout
"""


def written(known: KnownModel, request: Request) -> Request:
    """The request with the parameters that the model takes. `request` has the user's, too."""
    site = LIKE_OPENAI[known.provider]
    given = {name: value for name, value in request.items() if value is not None}
    supported = known.supported | set(given.get("allowed_openai_params") or ())
    unknown = {*ABOUT_THE_CALL.split(), *prices_in(given), *(given.get("additional_drop_params") or ())}
    # An empty list says that nothing is known.
    unknown |= COMMON.fields - supported - {"messages"} if supported else set()
    result = {name: value for name, value in given.items() if name not in unknown}
    result["messages"] = [taken(message, site) for message in given["messages"]]
    if "tools" in result and not site.takes_marks:
        result["tools"] = list(map(unmarked, result["tools"]))
    if known.provider == COMMON.provider and known.entry.get("supports_reasoning"):
        # Reasoning models know a length by its newer name alone, and many sample in one way.
        if "max_tokens" in result:
            result.setdefault("max_completion_tokens", result.pop("max_tokens"))
        # litellm lists `temperature` for all of them.
        if "top_p" not in known.supported:
            result.pop("temperature", None)
    return result | (given.get("extra_body") or {})


def taken(message: dict[str, Any], site: Site) -> dict[str, Any]:
    """The message as the provider takes it."""
    parts = message.get("content")
    if site.takes_marks:
        return message
    message = unmarked(message)
    if not isinstance(parts, list):
        return message
    parts = list(map(unmarked, parts))
    if not site.takes_parts and all(part.get("type") == "text" for part in parts):
        return {**message, "content": text_of(parts)}
    return {**message, "content": parts}


def unmarked(value: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name != "cache_control"}


# Local servers of models need no key.
KEYLESS = ("localhost", "127.0.0.1", "::1")
CONNECT_SECONDS = 60.0
# In a refusal: OpenAI lets some models answer as a stream to verified organizations alone, and some servers
# know no `stream_options`.
STREAM = re.compile(r"\bstream", re.IGNORECASE)


class ProviderServer:
    """A provider's server, in the protocols that it speaks. Belongs to one event loop."""

    def __init__(self, known: KnownModel, parameters: Mapping[str, Any], silence: float | None) -> None:
        """`parameters` are the user's, of which the address, the key and `extra_headers` matter here.

        `silence`, in seconds: see Relaying.patience.
        """
        self._known = known
        self._parameters = parameters
        self._silence = silence
        self._secrets = secrets_in(parameters)
        # The gateway's rate limiter limits the connections, and the reader of an answer its time.
        limits = httpx.Limits(max_connections=None)
        self._client = httpx.AsyncClient(timeout=httpx.Timeout(None, connect=CONNECT_SECONDS), limits=limits)
        self._streams = True
        self._spoken: dict[str, bool] = {}
        """By the protocol: whether the server speaks it, as far as it has been asked."""

    def speaks(self, protocol: WireProtocol) -> bool:
        """Whether the provider does, as far as its name and its answers until now say."""
        if protocol is COMMON:
            # Some models of OpenAI speak Responses alone, to which litellm converts.
            return self._known.provider in LIKE_OPENAI and self._known.entry.get("mode") != "responses"
        return self._known.provider == protocol.provider and self._spoken.get(protocol.name, True)

    async def ask(self, asked: Asked) -> Body:
        """The whole answer; events are relayed as they come. Raises ModelCallError, and NotSpokenError."""
        try:
            return await self._read(asked, is_stream=self._streams)
        except ModelCallError as error:
            if error.failure is not Failure.DENIED or not STREAM.search(error.message) or not self._streams:
                raise
        body = await self._read(asked, is_stream=False)
        self._streams = False
        return body

    async def _read(self, asked: Asked, *, is_stream: bool) -> Body:
        protocol = asked.protocol
        headers = self._headers(protocol, asked.headers)
        request = written(self._known, asked.request) if protocol is COMMON else asked.request
        response = self._client.stream(
            "POST",
            protocol.address(self._base(protocol), self._known.name, is_stream=is_stream),
            headers=headers,
            json=protocol.content(request, self._known.name, is_stream=is_stream),
            # httpx takes this header along to no other server, and does not know the others that hold a key.
            follow_redirects="authorization" in headers,
        )
        return await read_answer(
            self._events(protocol, response),
            Relaying(protocol, asked.relay),
            model=self._known.model,
            silence=self._silence,
            secrets=self._secrets,
        )

    @asynccontextmanager
    async def _events(
        self, protocol: WireProtocol, request: Any
    ) -> AsyncIterator[AsyncIterator[list[Event]]]:
        async with request as response:
            if not response.is_success:
                text = b"".join([piece async for piece in limited_bytes(response)]).decode(errors="replace")
                # Chat completions have another path there. A server that has answered misses only an item.
                is_new = self._known.provider in LIKE_OPENAI and not self._spoken.get(protocol.name)
                is_unknown = response.status_code in NOWHERE_STATUS and (is_new or is_no_model_api(text))
                if is_unknown and protocol is not COMMON:
                    self._spoken[protocol.name] = False
                    raise NotSpokenError
                raise denied(self._known.model, response, text, self._secrets)
            self._spoken[protocol.name] = True
            yield events_of(response)

    def _site(self, protocol: WireProtocol) -> Site:
        return LIKE_OPENAI.get(self._known.provider, protocol.site)

    def _base(self, protocol: WireProtocol) -> str:
        site = self._site(protocol)
        base = self._known.base or first(site.base_variables) or site.base_url
        if not base:
            text = f"{self._known.model}: its address is not known: state --super-model-arg=api_base=URL"
            raise ModelCallError(Failure.FATAL, text)
        return base.rstrip("/")

    def _headers(self, protocol: WireProtocol, passed: Mapping[str, str]) -> httpx.Headers:
        site = self._site(protocol)
        key = self._parameters.get("api_key") or self._known.key or first(site.key_variables)
        extra = self._parameters.get("extra_headers") or {}
        base = self._base(protocol)
        if not (key or any(map(is_secret_name, extra)) or urlsplit(base).hostname in KEYLESS):
            names = ", ".join(self._known.missing_keys()) or "the variable that litellm reads"
            told = f"its key is missing: set {names} (to any text, if {base} needs none)"
            raise ModelCallError(Failure.FATAL, f"{self._known.model}: {told}")
        # No header can end with a blank, as one without a key would.
        headers = httpx.Headers(protocol.headers(key or "-"))
        headers.update({name: value for name, names in site.headers.items() if (value := first(names))})
        headers.update(passed)
        headers.update(extra)
        return headers


def first(names: tuple[str, ...]) -> str:
    """The value of the first of these environment variables that is set, "" if none is."""
    return next(filter(None, map(os.environ.get, names)), "")
