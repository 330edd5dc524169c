"""Makes the calls of all trials in the gateway: limits, retries, booking and recording around a provider."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from pytest_super.model.completion import NO_USAGE, BudgetSpentError, Usage
from pytest_super.model.failures import Failure, ModelCallError, error_data
from pytest_super.model.ledger import Ledger
from pytest_super.model.protocols.protocol import reading
from pytest_super.model.protocols.registry import COMMON
from pytest_super.model.provider import NotSpokenError
from pytest_super.model.rate_limit import HeadStart
from pytest_super.model.retry import Tries
from pytest_super.model.token_estimate import UNBOUNDED, count_characters
from pytest_super.store.json_lines import append, to_line
from pytest_super.store.trajectory import now

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_super.model.protocols.protocol import Request, WireProtocol
    from pytest_super.model.provider import Answer, ModelProvider, Relay
    from pytest_super.model.retry import RetryPolicy
    from pytest_super.model.settings import CallingTrial, ModelSettings
    from pytest_super.model.token_estimate import MaxUsage

NO_PRICE = (
    "the price of {model} is not known, so --super-max-cost cannot be enforced: leave it out, or state the "
    "price with --super-model-arg=input_cost_per_token=X and output_cost_per_token=Y"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asks: a request in plain JSON values, with the fields that a provider may see."""

    protocol: WireProtocol
    request: Request
    chat: Request
    """The same as a chat completion."""
    headers: Mapping[str, str]
    """Those of the client that the protocol's own provider gets."""
    relay: Relay | None
    """Gets the events of the answer, if the client wants a stream and the provider speaks its protocol."""


# Compared by identity: calls are kept in a set, and two of them can have the same request.
@dataclass(kw_only=True, eq=False)
class ModelCall:
    """A trial's request; the provider can be asked several times for it."""

    trial: str
    task: str
    asked: Asked
    own: Request
    """The request in the client's protocol, with the user's parameters."""
    request: Request
    """The same as a chat completion, which also says how large it is."""
    characters: int
    most: MaxUsage
    """For each attempt."""
    started: str = field(default_factory=now)
    began: float = field(default_factory=monotonic)
    attempts: int = 0
    usage: Usage = NO_USAGE
    """The sum over all attempts until now."""
    # Not a parameter: the task that sets it needs the call.
    result: asyncio.Future[Answer] = field(init=False)
    tries: Tries = field(default_factory=Tries)
    answer: Answer | None = None
    is_asked: bool = False
    """Whether the provider is working on it at this moment."""
    is_abandoned: bool = False

    @property
    def seconds(self) -> float:
        return monotonic() - self.began

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Marks the time in which the provider works on the call."""
        self.attempts += 1
        self.is_asked = True
        try:
            yield
        except ModelCallError:
            # Otherwise the retry policy would ask again, for nobody.
            if self.is_abandoned:
                self.result.cancel()
            raise
        finally:
            self.is_asked = False

    def abandon(self) -> None:
        """Do not ask the provider again, because the client has left.

        An attempt that the provider is working on continues and is booked, because it is charged anyway.
        """
        self.is_abandoned = True
        if not self.is_asked:
            self.result.cancel()


class Caller:
    """The calls of all trials of a run. Belongs to one event loop."""

    def __init__(self, settings: ModelSettings, provider: ModelProvider, retry: RetryPolicy) -> None:
        """Raises OSError if calls cannot be booked."""
        self.settings = settings
        self.provider = provider
        self.retry = retry
        self.ledger = Ledger(Path(settings.calls), settings.max_cost, settings.machines)
        self.under_way: dict[str, set[ModelCall]] = defaultdict(set)
        """By the names of trials."""
        self.failures: dict[str, str] = {}
        """By the names of trials: the provider's last failure, if it has not answered the trial since."""
        self._head_start = HeadStart()

    async def usage(self, trial: str, timeout: float) -> Usage:
        """What the trial has used, once its calls have ended or `timeout` seconds have passed."""
        if calls := self.under_way[trial]:
            # Not `wait_for`, which would cancel the calls at the time-out.
            await asyncio.wait([call.result for call in calls], timeout=timeout)
        return self.ledger.account(trial).usage

    def waits_for(self, trial: str) -> str:
        """What the trial's oldest call waits for; "" if for nothing but an answer."""
        call = min(self.under_way[trial], key=lambda call: call.began, default=None)
        return "" if call is None else self.retry.waits_for(call.tries, is_asked=call.is_asked)

    async def complete(self, trial: CallingTrial, asked: Asked) -> Answer:
        """The answer to one request, in its protocol. Raises BudgetSpentError and ModelCallError.

        If the client leaves while the provider is working, the attempt continues and is booked. A call that
        is waiting at that moment, for a limit or for a retry, is cancelled.
        """
        account = self.ledger.account(trial.name)
        account.tokens.allow(trial.token_limit)
        account.cost.allow(trial.cost_limit)
        call = self._new_call(trial, asked)
        try:
            # Shielded, because this is cancelled when the client leaves.
            return await asyncio.shield(call.result)
        except asyncio.CancelledError:
            call.abandon()
            raise

    def _new_call(self, trial: CallingTrial, asked: Asked) -> ModelCall:
        with reading():
            call = self._read_call(trial, asked)
        call.result = asyncio.ensure_future(self._make(call))
        self.under_way[call.trial].add(call)
        call.result.add_done_callback(lambda _: self._end(call))
        return call

    def _read_call(self, trial: CallingTrial, asked: Asked) -> ModelCall:
        request = self._prepare(trial, asked.chat)
        own = asked.protocol.with_defaults(asked.request, self.settings.parameters)
        return ModelCall(
            trial=trial.name,
            task=trial.task,
            asked=asked,
            own=request if asked.protocol is COMMON else own,
            request=request,
            characters=count_characters(request),
            most=UNBOUNDED if asked.protocol.has_files(own) else self.provider.max_usage(request),
        )

    def _prepare(self, trial: CallingTrial, chat: Request) -> Request:
        """The request with the user's parameters. Epochs get different seeds, so that they differ."""
        users = self.settings.parameters
        # They win over those of an agent of ours; those of a program win over them.
        stated = {name: value for name, value in chat.items() if value is not None}
        request: Request = {**users, **stated} if trial.is_program else {**chat, **users}
        # No request chooses its model.
        request["model"] = self.settings.name
        if self.provider.takes_seed:
            # Not `setdefault`, because a client can send null for a parameter that it leaves out.
            request["seed"] = trial.epoch if request.get("seed") is None else request["seed"]
        return request

    def _end(self, call: ModelCall) -> None:
        self.under_way[call.trial].discard(call)
        self._head_start.end()
        if not call.result.cancelled():
            # asyncio complains about an exception that nobody retrieves, and the client can have left.
            call.result.exception()

    async def _make(self, call: ModelCall) -> Answer:
        try:
            with self.ledger.account(call.trial).waiting.call():
                await self._head_start.wait()
                answer = await self.retry.call(
                    partial(self._attempt, call),
                    partial(self.ledger.reserve, call.trial, call.characters, call.most),
                    call.tries,
                )
        except (BudgetSpentError, ModelCallError) as error:
            # An answer of unknown price can end the run, but it was paid.
            self._record(call, call.answer.body if call.answer else {"error": error_data(error)})
            raise
        self._record(call, answer.body)
        # The sum over all attempts, as in the ledger: broken answers are charged as well.
        return replace(answer, usage=call.usage)

    async def _attempt(self, call: ModelCall) -> Answer:
        """The provider's answer, booked. Raises ModelCallError."""
        account = self.ledger.account(call.trial)
        # A script chooses an answer by the number of calls that have ended, so a retry gets the same one.
        try:
            with account.waiting.attempt(), call.asking():
                answer, is_chat = await self._ask(call, account.answered + 1)
        except ModelCallError as error:
            # A final failure uses up an answer, too, or a script could not continue after an error.
            account.answered += error.is_final
            # A final one is about the request: the provider works.
            if not error.is_final:
                self.failures[call.trial] = error.message
            if error.usage != NO_USAGE:
                self._book(call, error.usage, started=call.started)
                self._check_price(error.usage, self.settings.name)
            raise
        self.failures.pop(call.trial, None)
        answer = replace(answer, started=call.started, seconds=call.seconds, attempts=call.attempts)
        waited = round(account.waiting.seconds, 3)
        facts = {**answer.facts(), "characters": call.characters, "waited_seconds": waited}
        self._book(call, answer.usage, **facts)
        call.answer = answer
        self._check_price(answer.usage, answer.model)
        # After the booking: whatever the answer looks like, it is paid.
        return (
            replace(answer, body=call.asked.protocol.from_chat(answer.body, call.own)) if is_chat else answer
        )

    async def _ask(self, call: ModelCall, number: int) -> tuple[Answer, bool]:
        """The provider's answer, and whether it is a chat completion. Raises ModelCallError."""
        asked = call.asked
        if self.provider.speaks(asked.protocol):
            with suppress(NotSpokenError):
                relay = asked.relay and self._head_start.ended_by(asked.relay)
                return await self.provider.stream(asked.protocol, call.own, asked.headers, relay), False
        return await self.provider.complete(call.request, task=call.task, call=number), True

    def _book(self, call: ModelCall, usage: Usage, /, **facts: Any) -> None:
        call.usage += usage
        with disk_errors(self.settings.calls, "--super-dir"):
            self.ledger.charge(call.trial, usage, call.most, **facts)

    def _check_price(self, usage: Usage, model: str) -> None:
        """Raises ModelCallError, FATAL, which stops the run, if its limit of cost cannot be enforced."""
        if usage.cost_usd is None and self.settings.max_cost is not None:
            raise ModelCallError(Failure.FATAL, NO_PRICE.format(model=model))

    def _record(self, call: ModelCall, response: dict[str, Any]) -> None:
        """Append the whole call to the trial's file, if the user asked for that."""
        if self.settings.record is None:
            return
        path = Path(self.settings.record, f"{call.trial}.jsonl")
        data = {"started": call.started, "request": call.own, "response": response}
        with disk_errors(path, "--super-record"):
            path.parent.mkdir(parents=True, exist_ok=True)
            append(path, to_line(data))


@contextmanager
def disk_errors(path: str | Path, option: str) -> Iterator[None]:
    """Turns an OSError from writing to `path`, which `option` chooses, into a failure that ends the run."""
    try:
        yield
    except OSError as error:
        text = f"{path} cannot be written: {error.strerror}: make room, or name another folder by {option}"
        raise ModelCallError(Failure.FATAL, text) from None
