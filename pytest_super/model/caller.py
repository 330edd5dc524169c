"""Makes the calls of all trials in the gateway: limits, retries, booking and recording around a provider."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from pytest_super.model.completion import (
    NO_USAGE,
    Answer,
    BudgetSpentError,
    Failure,
    ModelCallError,
    Usage,
    disk_errors,
    error_data,
)
from pytest_super.model.ledger import Ledger
from pytest_super.model.protocols.canonical import parts_of
from pytest_super.model.protocols.common import COMMON
from pytest_super.model.protocols.protocol import Request, reading
from pytest_super.model.provider import Asked, ModelProvider
from pytest_super.model.recorded import Taken, answer_of, recorded_trials
from pytest_super.model.retry import RetryPolicy, Tries
from pytest_super.model.settings import CallingTrial, ModelSettings
from pytest_super.model.token_estimate import UNBOUNDED, MaxUsage, count_characters
from pytest_super.store.trajectory import now

T = TypeVar("T")

NO_PRICE = (
    "the price of {model} is not known, so --super-max-cost cannot be enforced: leave it out, or state the "
    "price with --super-model-arg=input_cost_per_token=X and output_cost_per_token=Y"
)

REFUSED = (
    "the trial has recorded answers, and a provider can refuse the encrypted thoughts in them: "
    "--super-answers=none does without"
)


# Compared by identity: calls are kept in a set, and two of them can have the same request.
@dataclass(kw_only=True, eq=False)
class ModelCall:
    """A trial's request; the provider can be asked several times for it."""

    trial: CallingTrial
    asked: Asked
    characters: int
    most: MaxUsage
    """For each attempt."""
    number: int = 0
    """In its trial's record."""
    taken: Taken | None = None
    """Whose answer it gets; None if the model is asked."""
    has_ended: bool = False
    """Whether the record has its answer or its failure."""
    task: asyncio.Task[Any] | None = field(default_factory=asyncio.current_task)
    """In which the call is made. It is cancelled when the client leaves."""
    started: str = field(default_factory=now)
    began: float = field(default_factory=monotonic)
    usage: Usage = NO_USAGE
    """The sum over all attempts until now."""
    tries: Tries = field(default_factory=Tries)


class Caller:
    """The calls of all trials of a run. Belongs to one event loop."""

    def __init__(self, settings: ModelSettings, provider: ModelProvider, retry: RetryPolicy) -> None:
        """Raises OSError if calls cannot be booked."""
        self.settings = settings
        self.provider = provider
        self.retry = retry
        self.ledger = Ledger(Path(settings.calls), settings.max_cost)
        self.recorded = recorded_trials(settings)
        self.under_way: dict[str, set[ModelCall]] = defaultdict(set)
        """By the names of trials."""
        self._failures: dict[str, str] = {}

    async def usage(self, trial: str, timeout: float) -> dict[str, Any]:
        """What the trial has used, once its calls have ended or `timeout` seconds have passed.

        With it, how long the trial has waited for anything but answers, and the provider's last failure if it
        has not answered the trial since.
        """
        if tasks := [call.task for call in self.under_way[trial] if call.task]:
            # Not `wait_for`, which would cancel the calls at the time-out.
            await asyncio.wait(tasks, timeout=timeout)
        account = self.ledger.account(trial)
        waited = account.waiting.seconds
        return {**asdict(account.usage), "failure": self._failures.get(trial), "waited_seconds": waited}

    def waits_for(self, trial: str) -> str:
        """What the trial's oldest call waits for; "" if for nothing but an answer."""
        call = min(self.under_way[trial], key=lambda call: call.began, default=None)
        return "" if call is None else self.retry.waits_for(call.tries)

    async def complete(self, trial: CallingTrial, asked: Asked) -> Answer:
        """The answer to one request, in its protocol; `asked` has no parameters of the user yet.

        Raises BudgetSpentError and ModelCallError.

        When this is cancelled, because the client has left, the call is not tried again. An attempt that the
        provider is working on continues and is booked, because it is charged anyway.
        """
        account = self.ledger.account(trial.name)
        account.tokens.allow(trial.token_limit)
        account.cost.allow(trial.cost_limit)
        with reading():
            call = self._read_call(trial, asked)
        under_way = self.under_way[trial.name]
        under_way.add(call)
        try:
            with account.waiting.call():
                return await self._answer(call, self._record_request(call))
        except (BudgetSpentError, ModelCallError) as error:
            self._record_end(call, error=error_data(error))
            raise
        finally:
            under_way.remove(call)

    def _read_call(self, trial: CallingTrial, asked: Asked) -> ModelCall:
        chat = self._prepare(trial, asked.chat)
        is_chat = asked.protocol is COMMON
        own = asked.protocol.with_defaults(asked.request, self.settings.parameters)
        return ModelCall(
            trial=trial,
            asked=replace(asked, request=chat if is_chat else own, chat=chat, task=trial.task),
            characters=count_characters(chat),
            most=UNBOUNDED if asked.protocol.has_files(own) else self.provider.max_usage(chat),
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

    async def _answer(self, call: ModelCall, miss: ModelCallError | None) -> Answer:
        def left() -> None:
            self._record(call, left_after=round(monotonic() - call.began, 3))

        if miss is not None:
            # A limit that would refuse the call ends the trial as it did when it was recorded.
            async with self.ledger.reserve(call.trial.name, call.characters, call.most, is_paid=False):
                raise miss
        if call.taken is not None:
            return await to_its_end(self._give(call, call.taken), left)
        try:
            return await self.retry.call(
                lambda: to_its_end(self._attempt(call), left),
                partial(self.ledger.reserve, call.trial.name, call.characters, call.most),
                call.tries,
            )
        except ModelCallError as error:
            raise self._meaning(call, error) from None

    def _meaning(self, call: ModelCall, error: ModelCallError) -> ModelCallError:
        """The error, which may not be the agent's if its trial has got recorded answers."""
        if error.failure is not Failure.REFUSED or self.recorded is None:
            return error
        with self.recorded.recording(call.trial) as record:
            if not record.has_taken:
                return error
        text = f"{error.message}; {REFUSED}"
        return ModelCallError(Failure.TRANSIENT, text, usage=error.usage, is_final=True)

    async def _give(self, call: ModelCall, taken: Taken) -> Answer:
        """The recorded answer, booked like the model's. Raises ModelCallError."""
        recorded, answer = taken.call, replace(answer_of(taken), started=call.started)
        most = MaxUsage(prompt_tokens=answer.usage.prompt_tokens, cost_usd=answer.usage.cost_usd or 0.0)
        async with self.ledger.reserve(call.trial.name, call.characters, most, is_paid=False):
            if recorded.left_after is not None:
                # The client left it, and can leave again.
                with self.ledger.account(call.trial.name).waiting.attempt():
                    await asyncio.sleep(recorded.end["seconds"])
            self._book(call, answer.usage, **answer.facts(), characters=call.characters)
        self._record_end(call, **{**recorded.end, "started": call.started})
        return answer

    async def _attempt(self, call: ModelCall) -> Answer:
        """The provider's answer, booked. Raises ModelCallError."""
        trial, account = call.trial.name, self.ledger.account(call.trial.name)
        # A script chooses an answer by the number of calls that have ended, so a retry gets the same one.
        began = monotonic()
        try:
            with account.waiting.attempt():
                answer = await self.provider.ask(call.asked, account.answered + 1)
        except ModelCallError as error:
            # A final failure uses up an answer, too, or a script could not continue after an error.
            account.answered += error.is_final
            # A final one is about the request: the provider works.
            if not error.is_final:
                self._failures[trial] = error.message
            if error.usage != NO_USAGE:
                self._book(call, error.usage, started=call.started)
                self._check_price(error.usage, self.settings.name)
            raise
        self._failures.pop(trial, None)
        seconds = monotonic() - call.began
        answer = replace(answer, started=call.started, seconds=seconds, attempts=call.tries.failed + 1)
        waited = round(account.waiting.seconds, 3)
        self._book(call, answer.usage, **answer.facts(), characters=call.characters, waited_seconds=waited)
        # After the booking: whatever the answer looks like, it is paid.
        if answer.is_chat:
            body = call.asked.protocol.from_chat(answer.body, call.asked.request)
            answer = replace(answer, body=body, is_chat=False)
        took = {"seconds": round(monotonic() - began, 3)}
        self._record_end(call, answer=answer.body, **answer.facts() | took)
        self._check_price(answer.usage, answer.model)
        # The sum over all attempts, as in the ledger: broken answers are charged as well.
        return replace(answer, usage=call.usage)

    def _book(self, call: ModelCall, usage: Usage, /, **facts: Any) -> None:
        usage = replace(usage, provided=1 - usage.recorded)
        call.usage += usage
        with disk_errors(self.settings.calls):
            self.ledger.charge(call.trial.name, usage, call.most, **facts | {"provided": usage.provided})

    def _check_price(self, usage: Usage, model: str) -> None:
        """Raises ModelCallError, FATAL, which stops the run, if its limit of cost cannot be enforced."""
        if usage.cost_usd is None and self.settings.max_cost is not None:
            raise ModelCallError(Failure.FATAL, NO_PRICE.format(model=model))

    def _record_request(self, call: ModelCall) -> ModelCallError | None:
        """Write the call and take its recorded answer. Returns the failure if it needs one and has none."""
        if self.recorded is None:
            return None
        parts = list(parts_of(call.asked.protocol, call.asked.request))
        with self.recorded.recording(call.trial) as record:
            call.number, call.taken = record.ask(parts, started=call.started)
            is_miss = call.taken is None and (self.settings.needs_answers or record.is_in_past)
            return record.miss(parts, call.number) if is_miss else None

    def _record_end(self, call: ModelCall, **facts: Any) -> None:
        """Write the answer or the failure, once: an answer can be refused afterwards."""
        if not call.has_ended:
            call.has_ended = True
            self._record(call, **facts)

    def _record(self, call: ModelCall, **facts: Any) -> None:
        """Write what became of the call."""
        if self.recorded is not None and call.number:
            with self.recorded.recording(call.trial) as record:
                record.add(call.number, **facts)


async def to_its_end(work: Coroutine[Any, Any, T], cancelled: Callable[[], None]) -> T:
    """The result of `work`, which a cancellation does not stop; `cancelled` is then called at once."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        cancelled()
        await asyncio.gather(task, return_exceptions=True)
        raise
