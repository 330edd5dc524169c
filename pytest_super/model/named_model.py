"""The run's model, by the name that litellm knows: asked over our own HTTP, or through litellm.

In Responses, Messages and Gemini's protocol the provider gets what the client sent.
"""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import cache
from math import ceil
from typing import Any

import httpx

from pytest_super.json_values import object_in, objects, parts_in
from pytest_super.model.completion import NO_USAGE, Answer, Failure, ModelCallError, Usage
from pytest_super.model.explanation import NOWHERE_STATUS, denied, is_no_model_api
from pytest_super.model.known_model import KnownModel
from pytest_super.model.protocols.common import COMMON
from pytest_super.model.protocols.protocol import Body, Event, Request, Tokens, WireProtocol, is_count
from pytest_super.model.provider import Asked, ModelProvider
from pytest_super.model.sites import LIKE_OPENAI, address_of, written
from pytest_super.model.streamed_answer import (
    BrokenStreamError,
    NotSpokenError,
    Relaying,
    events_of,
    limited_bytes,
    read_answer,
)
from pytest_super.model.token_estimate import (
    CHARACTERS_PER_TOKEN,
    LENGTHS,
    MaxUsage,
    count_characters,
    estimate_tokens,
    max_usage,
    prices_of,
)
from pytest_super.redaction import secrets_in

CONNECT_SECONDS = 60.0
# Those that this machine trusts, whose file takes a fiftieth of a second to read.
certificates = cache(httpx.create_ssl_context)
# In a refusal: OpenAI lets some models answer as a stream to verified organizations alone, and some servers
# know no `stream_options`.
STREAM = re.compile(r"\bstream", re.IGNORECASE)
NO_PROVIDER = "no such provider: name a model as litellm does, PROVIDER/MODEL, such as openai/gpt-4o"
# The fields of a message that have what a model says; others repeat it.
SAID = ("content", "reasoning_content", "tool_calls")
# The fields of any usage that have numbers of tokens; others have times, prices, names and lists.
COUNT = re.compile(r"\w*(_tokens|TokenCount)")
# Those that cannot be null.
ALWAYS = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")


class NamedModel(ModelProvider):
    """The model of this name. The constructor imports litellm for a new one, which takes seconds.

    `parameters` are the user's, which requests have, too: OpenAI's, and litellm's own such as `api_base`,
    `input_cost_per_token` and `timeout`, in seconds: see `Relaying.patience` and, for whole answers,
    `KnownModel.ask`. Belongs to one event loop.
    """

    def __init__(self, model: str, parameters: Mapping[str, Any] | None = None) -> None:
        self.model = model
        self.parameters = dict(parameters or {})
        seconds = self.parameters.pop("timeout", None)
        self._timeout = None if seconds is None else float(seconds)
        self._known = KnownModel(model, self.parameters)
        self.takes_seed = "seed" in self._known.supported
        self._prices = prices_of(self._known.entry, self.parameters)
        self._secrets = secrets_in(self.parameters)
        # The gateway's rate limiter limits the connections, and the reader of an answer its time.
        limits, timeout = httpx.Limits(max_connections=None), httpx.Timeout(None, connect=CONNECT_SECONDS)
        self._client = httpx.AsyncClient(verify=certificates(), timeout=timeout, limits=limits)
        self._streams = True
        self._spoken: dict[str, bool] = {}
        """By the protocol: whether the server speaks it, as far as it has been asked."""
        self.needs_litellm = not self._speaks(COMMON)
        """For chat completions."""

    def _speaks(self, protocol: WireProtocol) -> bool:
        """Whether the provider speaks it, as far as its name and its answers until now say."""
        if protocol is COMMON:
            # Some models of OpenAI speak Responses alone, to which litellm converts.
            return self._known.provider in LIKE_OPENAI and self._known.entry.get("mode") != "responses"
        return self._known.provider == protocol.provider and self._spoken.get(protocol.name, True)

    def max_usage(self, request: Request) -> MaxUsage:
        """Uses the highest of the model's prices that litellm or the user knows."""
        # A parameter that the provider does not support is dropped, so it limits nothing.
        dropped = () if self._known.supported & set(LENGTHS) else LENGTHS
        return max_usage({name: request[name] for name in request if name not in dropped}, self._prices)

    async def ask(self, asked: Asked, call: int) -> Answer:  # noqa: ARG002
        """One answer; the number of the call makes no difference. Raises ModelCallError."""
        if not self._known.provider:
            raise ModelCallError(Failure.FATAL, f"{self.model}: {NO_PROVIDER}")
        if asked.protocol is COMMON:
            return await self._ask(asked)
        if self._speaks(asked.protocol):
            with suppress(NotSpokenError):
                return await self._ask(asked)
        # Nothing is relayed: the client speaks another protocol.
        return await self._ask(Asked(COMMON, asked.chat, asked.chat))

    async def _ask(self, asked: Asked) -> Answer:
        """The answer, in the protocol of `asked`. Raises NotSpokenError, once, and ModelCallError.

        Of what is DENIED it is FATAL if the provider denies a harmless question as well, otherwise REFUSED: a
        prompt can provoke a 400, a 403 by moderation or a 404 by a router, which must not stop the run.
        """
        try:
            return await self._answer(asked)
        except ModelCallError as error:
            if error.failure is not Failure.DENIED:
                raise
            denied = error.message
        # Outside of the handler: what is handled would be a cause of the next failure.
        usage = NO_USAGE
        try:
            question = asked.protocol.with_defaults(asked.protocol.harmless, self.parameters)
            usage = (await self._answer(Asked(asked.protocol, question, question))).usage
        except ModelCallError as other:
            if other.failure in (Failure.DENIED, Failure.FATAL):
                raise ModelCallError(Failure.FATAL, denied) from None
        raise ModelCallError(Failure.REFUSED, denied, usage=usage)

    async def _answer(self, asked: Asked) -> Answer:
        try:
            if asked.protocol is COMMON and not self._speaks(COMMON):
                body = await self._known.ask(asked.request, self._timeout)
            else:
                body = await self._over_http(asked)
        except BrokenStreamError as broken:
            broken.usage = self._usage_of_part(asked.protocol, asked.request, broken)
            raise
        return self._read(asked.protocol, asked.request, body)

    async def _over_http(self, asked: Asked) -> Body:
        """The whole answer; events are relayed as they come. Raises ModelCallError, and NotSpokenError."""
        try:
            return await self._received(asked, is_stream=self._streams)
        except ModelCallError as error:
            if error.failure is not Failure.DENIED or not STREAM.search(error.message) or not self._streams:
                raise
        body = await self._received(asked, is_stream=False)
        self._streams = False
        return body

    async def _received(self, asked: Asked, *, is_stream: bool) -> Body:
        protocol = asked.protocol
        base, headers = address_of(self._known, protocol, self.parameters, asked.headers)
        request = written(self._known, asked.request) if protocol is COMMON else asked.request
        response = self._client.stream(
            "POST",
            protocol.address(base, self._known.name, is_stream=is_stream),
            headers=headers,
            json=protocol.content(request, self._known.name, is_stream=is_stream),
            # httpx takes this header along to no other server, and does not know the others that hold a key.
            follow_redirects="authorization" in headers,
        )
        return await read_answer(
            self._events(protocol, response),
            Relaying(protocol, asked.relay),
            model=self.model,
            silence=self._timeout,
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
                raise denied(self.model, response, text, self._secrets)
            self._spoken[protocol.name] = True
            yield events_of(response)

    def _read(self, protocol: WireProtocol, asked: Request, body: Body) -> Answer:
        """The answer. Raises ModelCallError if it has no message."""
        served = text_in(body, protocol.model_field)
        usage = object_in(body, protocol.usage_field)
        tokens = protocol.tokens(usage)
        is_stated = tokens.prompt > 0 and is_plausible(usage)
        if protocol is COMMON and not has_message(body):
            used = self._used(asked, served, tokens, usage) if is_stated else NO_USAGE
            raise ModelCallError(Failure.TRANSIENT, f"{self.model}: the answer has no message", usage=used)
        if not is_stated:
            message = protocol.said(body, asked)
            tokens = estimated(protocol, asked, [message.get(name) for name in SAID])
        # The usage of a chat completion has details with prices of their own.
        usage = with_tokens(usage, tokens) if protocol is COMMON and is_stated else openai_usage(tokens)
        return Answer(
            body={**body, "usage": usage} if protocol is COMMON else body,
            is_chat=protocol is COMMON,
            usage=self._used(asked, served, tokens, usage),
            is_counted=not is_stated,
            model=served or self.model,
            fingerprint=text_in(body, "system_fingerprint"),
        )

    def _used(self, asked: Request, served: str | None, tokens: Tokens, usage: Mapping[str, Any]) -> Usage:
        """`usage` is that of a chat completion."""
        return Usage(
            prompt_tokens=tokens.prompt,
            completion_tokens=tokens.completion,
            cached_tokens=tokens.cached,
            cost_usd=self._known.cost(asked, served, usage),
        )

    def _usage_of_part(self, protocol: WireProtocol, request: Request, broken: BrokenStreamError) -> Usage:
        """What a broken stream has used, as far as it says, otherwise by an estimate."""
        stated = protocol.tokens(protocol.usage_of(broken.events))
        guess = estimated(protocol, request, [event.get(protocol.said_in) for event in broken.events])
        prompt = stated.prompt or guess.prompt
        completion, cached = stated.completion or guess.completion, min(stated.cached, prompt)
        tokens = replace(stated, prompt=prompt, completion=completion, cached=cached)
        named = (text_in(event, protocol.model_field) for event in broken.events)
        served = next(filter(None, named), None)
        return self._used(request, served, tokens, openai_usage(tokens))


def estimated(protocol: WireProtocol, request: Request, said: Any) -> Tokens:
    """About what a call has used, by what the prompt and the model say."""
    prompt = count_characters(protocol.to_chat(request))
    return Tokens(ceil(prompt / CHARACTERS_PER_TOKEN), estimate_tokens(said))


def openai_usage(tokens: Tokens) -> dict[str, Any]:
    """What an answer used, in the form of chat completions."""
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.completion,
        "total_tokens": tokens.prompt + tokens.completion,
        "prompt_tokens_details": {
            "cached_tokens": tokens.cached,
            # Old versions of litellm know both or none.
            "cache_creation_token_details": {
                "ephemeral_5m_input_tokens": tokens.cache_writes - tokens.hour_writes,
                "ephemeral_1h_input_tokens": tokens.hour_writes,
            },
        },
        # By these litellm computes the price of a cache.
        "cache_read_input_tokens": tokens.cached,
        "cache_creation_input_tokens": tokens.cache_writes,
    }


def with_tokens(usage: Mapping[str, Any], tokens: Tokens) -> dict[str, Any]:
    """The usage of a chat completion as OpenAI states it, whatever names the server has."""
    details = {**object_in(usage, "prompt_tokens_details"), "cached_tokens": tokens.cached}
    return {**usage, "completion_tokens": tokens.completion, "prompt_tokens_details": details}


def is_plausible(usage: Mapping[str, Any]) -> bool:
    """Whether no number of tokens is impossible, those of the details included; these can be null."""
    stated = [field for part in parts_in(usage) for field in part.items() if COUNT.fullmatch(field[0])]
    return all(is_count(value) for name, value in stated if value is not None or name in ALWAYS)


def has_message(body: Body) -> bool:
    """Whether the answer has a message; its content may be missing."""
    messages = [choice.get("message") for choice in objects(body.get("choices"))[:1]]
    return any(isinstance(each, dict) and isinstance(each.get("content"), str | None) for each in messages)


def text_in(body: dict[str, Any], name: str) -> str | None:
    return value if isinstance(value := body.get(name), str) else None
