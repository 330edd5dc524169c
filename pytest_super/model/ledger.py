"""What the trials of a run have used and waited, on disk: a restarted gateway knows what the last spent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

from pytest_super.model.completion import NO_USAGE, BudgetSpentError, Failure, ModelCallError, Usage
from pytest_super.model.token_estimate import UNBOUNDED, MaxUsage
from pytest_super.store.json_lines import append, read_lines, to_line


class WaitClock:
    """Runs while the trial has calls under way and the provider works on none of them.

    That is while all of them pause for a retry, for a rate limit or for other calls. The time of attempts
    that fail and are retried is added when they have failed, unless the provider answered another call of the
    trial meanwhile. So an agent that asks in many threads does not stop its wall time by one call that waits.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._waited = 0.0
        self._calls = 0
        self._attempts = 0
        self._is_answered = False
        # The beginning of what is not in `_waited` yet: of waiting, or of attempts under way at once.
        self._since = 0.0

    @property
    def seconds(self) -> float:
        is_waiting = self._calls > 0 and self._attempts == 0
        return self._waited + (self._clock() - self._since if is_waiting else 0.0)

    def resume(self, seconds: float) -> None:
        """Continue from what the clock of an earlier gateway showed."""
        self._waited = seconds

    @contextmanager
    def call(self) -> Iterator[None]:
        """Marks a call, from the request to its last answer or failure."""
        self._settle()
        self._calls += 1
        try:
            yield
        finally:
            self._settle()
            self._calls -= 1

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Marks the time in which the provider works on a call. A final failure is an answer."""
        if not self._attempts:
            self._settle()
            self._is_answered = False
        self._attempts += 1
        try:
            yield
            self._is_answered = True
        except ModelCallError as error:
            self._is_answered |= error.is_final
            raise
        finally:
            self._attempts -= 1
            if not self._attempts and self._is_answered:
                self._since = self._clock()

    def _settle(self) -> None:
        if not self._attempts:
            self._waited, self._since = self.seconds, self._clock()


# English text and code have four characters a token; other text has fewer, down to two for three tokens.
TOKENS_PER_CHARACTER = 0.25
MAX_TOKENS_PER_CHARACTER = 1.5
# A shorter prompt can consist mostly of what the provider puts around it.
MIN_CHARACTERS = 1000


class Limit:
    """An amount that calls use up. At most one of them exceeds it.

    While a call is made, the most that it can use is reserved; what it really used is added before the
    reservation ends. A call that does not fit next to the reservations of others waits until it fits, or
    until it is the only one: then what it is expected to use decides. Calls get their turn in the order in
    which they come, so that many small ones cannot keep a large one waiting for ever.
    """

    def __init__(self, error: Callable[[Limit, float], Exception]) -> None:
        """`error` makes the exception with which a call is refused, of this and of what the call needs."""
        self.amount: float = inf
        self.used: float = 0
        self._error = error
        self._reserved: list[float] = []
        self._excess = 0.0
        self._turn = asyncio.Lock()
        self._changed = asyncio.Event()

    def allow(self, amount: float | None) -> None:
        """Set the limit; None for no limit."""
        self.amount = inf if amount is None else amount
        self._changed.set()

    def add(self, used: float, most: float) -> None:
        """Book what a call used that had reserved `most`; if that was too little, later ones reserve more."""
        self.used += used
        self._excess = max(self._excess, used - most)

    @asynccontextmanager
    async def reserve(self, most: float, expected: Callable[[], float]) -> AsyncIterator[None]:
        """Raises the limit's error for a call that must not be made."""
        async with self._turn:
            while not self._has_room(most, expected):
                self._changed.clear()
                await self._changed.wait()
            self._reserved.append(most)
        try:
            yield
        finally:
            self._reserved.remove(most)
            self._changed.set()

    def _has_room(self, most: float, expected: Callable[[], float]) -> bool:
        left = self.amount - self.used
        # The smaller of both: a call that cannot exceed the limit is made, whatever is expected of it.
        if left <= 0 or min(most + self._excess, needed := expected()) > left:
            raise self._error(self, needed if left > 0 else 0.0)
        if not self._reserved:
            return True
        return sum(each + self._excess for each in (*self._reserved, most)) <= left


def trial_limit(name: str) -> Callable[[], Limit]:
    return lambda: Limit(lambda limit, needed: BudgetSpentError(name, why_too_small(name, limit, needed)))


def why_too_small(name: str, limit: Limit, needed: float) -> str:
    """Why nothing can be done within a limit, for a person; "" if something was done."""
    if limit.used or not needed:
        return ""
    amounts = f"about {needed:,.0f} of {limit.amount:,.0f} {name}"
    return f"the first request alone needs {amounts}: raise limits.{name} or shorten the prompt"


def run_cost_error(limit: Limit, _needed: float) -> ModelCallError:
    cost = f"the run has cost ${limit.used:.4f} of the ${limit.amount:g} allowed"
    return ModelCallError(Failure.RUN_COST, f"{cost}: raise --super-max-cost to go on")


@dataclass(kw_only=True)
class Account:
    """One trial: its limits, and what it used. Costs are US dollars of the calls whose price is known."""

    tokens: Limit = field(default_factory=trial_limit("tokens"))
    """Prompt tokens."""
    cost: Limit = field(default_factory=trial_limit("cost"))
    usage: Usage = NO_USAGE
    last_tokens: int = 0
    """The prompt tokens of the trial's last answered call; `last_characters` are its characters."""
    last_characters: int = 0
    waiting: WaitClock = field(default_factory=WaitClock)
    answered: int = 0
    """Calls with an answer, including those before a restart, and calls that were refused after it."""

    @property
    def tokens_per_character(self) -> float:
        if self.last_characters < MIN_CHARACTERS:
            return TOKENS_PER_CHARACTER
        # A ratio below the average is misleading, for example because the provider left out cached tokens.
        ratio = max(TOKENS_PER_CHARACTER, self.last_tokens / self.last_characters)
        return min(MAX_TOKENS_PER_CHARACTER, ratio)


class Ledger:
    """The accounts of a run, by trial, backed by an append-only file with a line for each answer."""

    def __init__(self, path: Path, max_cost: float | None) -> None:
        """Raises OSError if the file cannot be written: that must be known before the first call is paid."""
        self.cost = Limit(run_cost_error)
        self.cost.allow(max_cost)
        self.usage = NO_USAGE
        self._accounts: dict[str, Account] = {}
        for line in read_lines(path):
            # The file does not say what these calls had reserved, so they must not raise later reservations.
            self._add(line, UNBOUNDED)
            if "waited_seconds" in line:
                self.account(line["trial"]).waiting.resume(line["waited_seconds"])
        self._path = path
        append(path, "")

    def account(self, trial: str) -> Account:
        if trial not in self._accounts:
            self._accounts[trial] = Account()
        return self._accounts[trial]

    def estimate(self, trial: str, characters: int) -> tuple[int, float]:
        """The prompt tokens and the cost to expect of a call with so many characters.

        The tokens are those of the trial's last call, corrected by the difference in characters. A token
        costs the average of the trial's calls, or of the run's calls if the trial has none.
        """
        account = self.account(trial)
        longer = characters - account.last_characters
        tokens = max(0, account.last_tokens + round(longer * account.tokens_per_character))
        spent = account.usage if account.usage.prompt_tokens else self.usage
        price = (spent.cost_usd or 0.0) / spent.prompt_tokens if spent.prompt_tokens else 0.0
        return tokens, tokens * price

    @asynccontextmanager
    async def reserve(
        self, trial: str, characters: int, most: MaxUsage, *, is_paid: bool = True
    ) -> AsyncIterator[None]:
        """Reserve what one call can use in every limit; the call has to be booked inside.

        A call that is not paid counts in the limits of its trial only.

        Waits while the call and those under way could exceed a limit together. Raises BudgetSpentError, and
        ModelCallError for the run's limit: the call must not be made.
        """
        account = self.account(trial)

        def expected_cost() -> float:
            return self.estimate(trial, characters)[1]

        # The run's limit comes last: a call that waits for its trial's limit does not hold a reservation
        # that another trial needs.
        async with (
            account.tokens.reserve(most.prompt_tokens, lambda: self.estimate(trial, characters)[0]),
            account.cost.reserve(most.cost_usd, expected_cost),
            self.cost.reserve(most.cost_usd, expected_cost) if is_paid else nullcontext(),
        ):
            yield

    def charge(self, trial: str, usage: Usage, most: MaxUsage, /, **facts: Any) -> None:
        """Book what one attempt used. It survives a crash of the machine, because it is paid.

        `facts` go into the line as well. An attempt whose answer was thrown away has no `characters` there.
        """
        line = {"trial": trial, **asdict(usage), **facts}
        append(self._path, to_line(line))
        self._add(line, most)

    def _add(self, line: dict[str, Any], most: MaxUsage) -> None:
        account, usage = self.account(line["trial"]), Usage.from_data(line)
        account.usage += usage
        self.usage += usage
        account.tokens.add(usage.prompt_tokens, most.prompt_tokens)
        cost = usage.cost_usd or 0.0
        account.cost.add(cost, most.cost_usd)
        self.cost.add(cost - usage.recorded_usd, most.cost_usd)
        if "characters" in line:
            account.answered += 1
            account.last_tokens = usage.prompt_tokens
            account.last_characters = line["characters"]
