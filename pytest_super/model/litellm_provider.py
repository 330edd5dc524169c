"""Models of any provider, through litellm."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_super.model.completion import NO_USAGE, Usage
from pytest_super.model.failures import Failure, ModelCallError
from pytest_super.model.json_values import plain, texts
from pytest_super.model.litellm_chat import LitellmChat
from pytest_super.model.litellm_errors import explain
from pytest_super.model.litellm_setup import find_provider, import_litellm, supports
from pytest_super.model.protocols.protocol import Tokens, detail
from pytest_super.model.protocols.registry import COMMON
from pytest_super.model.provider import Answer, ModelProvider
from pytest_super.model.redaction import secrets_in
from pytest_super.model.streamed_answer import BrokenStreamError, Relaying, read_answer
from pytest_super.model.token_estimate import LENGTHS, entry_of, estimate_tokens, max_usage, prices_of
from pytest_super.model.upstream import Upstream
from pytest_super.model.usage import (
    cost_of,
    is_plausible,
    plausible_count,
    priced,
    register_prices,
    stated_tokens,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from pytest_super.model.protocols.protocol import Body, Event, Request, WireProtocol
    from pytest_super.model.provider import Relay
    from pytest_super.model.token_estimate import MaxUsage

# Its tokenizer comes with litellm; those of other models would be downloaded.
COUNTED_AS = "gpt-4"
# The fields of events that hold what a model says, in the protocols of Anthropic, OpenAI and Gemini.
SAYING = ("delta", "choices", "candidates")
NO_PROVIDER = "no such provider: name a model as litellm does, PROVIDER/MODEL, such as openai/gpt-4o"


class LitellmProvider(ModelProvider):
    """Asks the model that litellm knows by this name. The constructor imports litellm, which takes seconds.

    `parameters` are the user's, for every call that does not state them itself: OpenAI's, and litellm's own
    such as `api_base`, `input_cost_per_token` and `timeout`, in seconds: see `streamed_answer` and, for what
    cannot be streamed, `litellm_chat`.
    """

    def __init__(self, model: str, parameters: Mapping[str, Any] | None = None) -> None:
        self.model = model
        self.parameters = dict(parameters or {})
        timeout = self.parameters.pop("timeout", None)
        self._timeout = None if timeout is None else float(timeout)
        self._litellm = import_litellm()
        found = find_provider(self._litellm, model)
        self._is_known = found is not None
        self.takes_seed = supports(self._litellm, model, "seed")
        # litellm's own look-up asks the servers of some providers.
        self._prices = prices_of(entry_of(model, self._litellm.model_cost), self.parameters)
        self._keeps_length = any(supports(self._litellm, model, name) for name in LENGTHS)
        register_prices(self._litellm, model, self.parameters)
        provider, name = found or ("", model)
        self._upstream = Upstream(provider, name, self.parameters)
        self._chat = LitellmChat(self._litellm, model, provider, self.parameters, self._timeout)

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
        with self._priced_parts(request):
            return await self._complete(request)

    def speaks(self, protocol: WireProtocol) -> bool:
        return self._chat.is_streamed if protocol is COMMON else self._upstream.speaks(protocol)

    async def stream(
        self, protocol: WireProtocol, request: Request, headers: Mapping[str, str], relay: Relay | None
    ) -> Answer:
        with self._priced_parts(request):
            if protocol is COMMON:
                return await self._complete(request, relay)
            return await self._ask_native(protocol, request, headers, relay)

    @contextmanager
    def _priced_parts(self, request: Request) -> Iterator[None]:
        """A stream that breaks in the block has used what its parts say."""
        try:
            yield
        except BrokenStreamError as broken:
            broken.usage = self._usage_of_part(request, broken)
            raise

    async def _complete(self, request: Request, relay: Relay | None = None) -> Answer:
        asked, _ = COMMON.accepted(request, is_open=True)
        if not self._is_known:
            raise ModelCallError(Failure.FATAL, f"{self.model}: {NO_PROVIDER}")
        return await self._or_decided(partial(self._ask, asked, relay), partial(self._ask, COMMON.harmless))

    async def _ask_native(
        self, protocol: WireProtocol, request: Request, headers: Mapping[str, str], relay: Relay | None
    ) -> Answer:
        async def ask(request: Request, headers: Mapping[str, str], relay: Relay | None) -> Answer:
            source = self._upstream.stream(protocol, request, headers)
            relaying = Relaying(protocol, relay)
            secrets = secrets_in(self.parameters)
            body = await read_answer(
                source, relaying, model=self.model, silence=self._timeout, secrets=secrets
            )
            return self._native(protocol, request, body)

        # With what the user chose for every call, and nothing that this program did.
        harmless = protocol.with_defaults(protocol.harmless, self.parameters)
        return await self._or_decided(partial(ask, request, headers, relay), partial(ask, harmless, {}, None))

    def _native(self, protocol: WireProtocol, request: Request, body: Body) -> Answer:
        stated = protocol.tokens(body) if is_plausible(body) else None
        tokens = stated or Tokens(estimate_tokens(request), estimate_tokens(body))
        return Answer(
            body=body,
            usage=priced(self._litellm, self.model, tokens),
            is_counted=stated is None,
            model=text_in(body, "model") or self.model,
            fingerprint=None,
        )

    async def count_tokens(
        self, protocol: WireProtocol, request: Request, headers: Mapping[str, str]
    ) -> Body | None:
        return await self._upstream.count(protocol, request, headers)

    async def _or_decided(
        self, ask: Callable[[], Awaitable[Answer]], ask_harmless: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        """The answer. Raises ModelCallError, never DENIED: see `_decided`."""
        try:
            return await ask()
        except ModelCallError as error:
            failed = error
        # Outside of the handler: what is handled would be a cause of the next failure.
        raise await self._decided(failed, ask_harmless)

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

    async def _ask(self, asked: Request, relay: Relay | None = None) -> Answer:
        # The user's are litellm's own, too; what the request states wins.
        merged, relayed = {**self.parameters, **asked}, []

        async def relaying(events: list[Event]) -> None:
            relayed.append(True)
            if relay:
                await relay(events)

        try:
            return await self._answer(merged, await self._chat.ask(merged, relay and relaying))
        except ModelCallError as error:
            # What was relayed cannot be taken back.
            error.is_final |= bool(relayed)
            raise
        except Exception as error:
            # `from None`: a traceback would show the secrets that `explain` removes.
            raise explain(error, self.model, secrets_in(self.parameters)) from None

    async def _answer(self, asked: Request, response: Any) -> Answer:
        body = plain(response.model_dump(warnings=False))
        stated = stated_tokens(body)
        if not has_message(body):
            text = f"{self.model}: the answer has no message"
            usage = self._usage(response, *stated) if stated else NO_USAGE
            raise ModelCallError(Failure.TRANSIENT, text, usage=usage)
        if stated:
            cached = detail(body["usage"], "prompt_tokens_details", "cached_tokens")
            usage = self._usage(response, *stated, cached)
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

    def _usage_of_part(self, request: Request, broken: BrokenStreamError) -> Usage:
        """What a broken stream has used, as far as it says, otherwise by an estimate."""
        stated = broken.tokens
        said = [[event.get(name) for name in SAYING] for event in broken.events]
        prompt = plausible_count(stated.prompt) or estimate_tokens(request)
        completion = plausible_count(stated.completion) or estimate_tokens(said)
        cached = min(stated.cached, prompt)
        details = {"cached_tokens": cached}
        usage = self._litellm.Usage(
            prompt_tokens=prompt, completion_tokens=completion, prompt_tokens_details=details
        )
        model = next((name for event in broken.events if (name := text_in(event, "model"))), None)
        response = self._litellm.ModelResponse(model=model, usage=usage)
        response._hidden_params["response_cost"] = cost_of(
            self._litellm, self.model, {**self.parameters, **request}, response
        )
        return self._usage(response, prompt, completion, cached)

    def _usage(self, response: Any, prompt: int, completion: int, cached: int = 0) -> Usage:
        usage = priced(self._litellm, self.model, Tokens(prompt, completion, cached))
        # litellm's own sum for a response includes every discount.
        hidden = getattr(response, "_hidden_params", None) or {}
        cost = hidden.get("response_cost")
        return replace(usage, cost_usd=float(cost)) if cost else usage


def has_message(body: dict[str, Any]) -> bool:
    """Whether the answer has a message; its content may be missing."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return isinstance(message, dict) and isinstance(message.get("content"), str | None)


def text_in(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    return value if isinstance(value, str) else None
