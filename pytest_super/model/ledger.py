"""What the trials of a run have used of the model, on disk: a new gateway knows what the last one spent."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from pytest_super.model.answer import NOTHING
from pytest_super.model.bound import UNBOUNDED
from pytest_super.model.completion import BudgetSpentError, Used
from pytest_super.store.results import read_lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from pytest_super.model.bound import Bound

# Of English text and code, at least; of other text more, and of none more than the highest.
TOKENS_PER_CHARACTER = 0.25
HIGHEST = 1.5
# A shorter prompt may be mostly what the provider puts around it.
TELLING_CHARACTERS = 1000


class RunCostError(Exception):
    """The run's cost limit is reached."""


class Limit:
    """An amount that calls use up, and that one of them passes at most.

    A call holds the most that it can use while it is made, and what it used is added before it lets go. One
    whose most does not fit beside what others hold waits until it does, or until it is the only one: then it
    goes by what it is expected to use. Calls get their turn in the order in which they come, so that small
    ones do not keep a large one waiting for ever.
    """

    def __init__(self, error: Callable[[Limit], Exception]) -> None:
        """`error` is what a call is refused with."""
        self.amount: float = inf
        self.used: float = 0
        self._error = error
        self._held: list[float] = []
        self._excess = 0.0
        self._turn = asyncio.Lock()
        self._changed = asyncio.Event()

    def allow(self, amount: float | None) -> None:
        """None for any amount."""
        self.amount = inf if amount is None else amount
        self._changed.set()

    def add(self, used: float, most: float) -> None:
        """Book what a call used that holds `most`; where that was too little, those after it hold more."""
        self.used += used
        self._excess = max(self._excess, used - most)

    @asynccontextmanager
    async def hold(self, most: float, expected: Callable[[], float]) -> AsyncIterator[None]:
        """Raises the limit's error for a call that must not be made."""
        async with self._turn:
            while not self._has_room(most, expected):
                self._changed.clear()
                await self._changed.wait()
            self._held.append(most)
        try:
            yield
        finally:
            self._held.remove(most)
            self._changed.set()

    def _has_room(self, most: float, expected: Callable[[], float]) -> bool:
        left = self.amount - self.used
        if left <= 0 or min(most + self._excess, expected()) > left:
            raise self._error(self)
        return not self._held or sum(each + self._excess for each in (*self._held, most)) <= left


def trial_limit(name: str) -> Callable[[], Limit]:
    return lambda: Limit(lambda _: BudgetSpentError(name))


def run_cost_error(limit: Limit) -> RunCostError:
    return RunCostError(f"the run has cost ${limit.used:.4f} of the ${limit.amount:g} it may")


@dataclass(kw_only=True)
class Account:
    """One trial: its limits, and what it used. Costs are US dollars, of the calls whose price is known."""

    tokens: Limit = field(default_factory=trial_limit("tokens"))
    """Of prompts."""
    cost: Limit = field(default_factory=trial_limit("cost"))
    used: Used = NOTHING
    last_tokens: int = 0
    last_characters: int = 0
    answered: int = 0
    """Calls that had an answer or a refusal, since the gateway was started, or were booked before."""

    @property
    def tokens_per_character(self) -> float:
        if self.last_characters < TELLING_CHARACTERS:
            return TOKENS_PER_CHARACTER
        return min(HIGHEST, max(TOKENS_PER_CHARACTER, self.last_tokens / self.last_characters))


class Ledger:
    """All accounts of a run, by trial, backed by an append-only file with a line for each answer."""

    def __init__(self, path: Path, max_cost: float | None) -> None:
        self.cost = Limit(run_cost_error)
        self.cost.allow(max_cost)
        self.used = NOTHING
        self._accounts: dict[str, Account] = {}
        for line in read_lines(path):
            self._add(line, UNBOUNDED)
        self._path = path
        # Whether it can be written is known before the first call is paid.
        is_whole = not path.exists() or path.read_bytes()[-1:] in (b"", b"\n")
        self._append("" if is_whole else "\n")

    def account(self, trial: str) -> Account:
        if trial not in self._accounts:
            self._accounts[trial] = Account()
        return self._accounts[trial]

    def estimate(self, trial: str, characters: int) -> tuple[int, float]:
        """Prompt tokens and cost of a call: tokens of the trial's last one, and what its text is longer by.

        They cost what those of the trial's calls cost on average, where it has none yet those of the run's.
        """
        account = self.account(trial)
        longer = characters - account.last_characters
        tokens = max(0, account.last_tokens + round(longer * account.tokens_per_character))
        spent = account.used if account.used.prompt_tokens else self.used
        price = (spent.cost_usd or 0.0) / spent.prompt_tokens if spent.prompt_tokens else 0.0
        return tokens, tokens * price

    @asynccontextmanager
    async def reserve(self, trial: str, characters: int, bound: Bound) -> AsyncIterator[None]:
        """For one call, that is to be booked inside: what it may use is held in each limit.

        Waits where the call and those under way could pass a limit together. Raises BudgetSpentError and
        RunCostError: the call must not be made.
        """
        account = self.account(trial)

        def cost() -> float:
            return self.estimate(trial, characters)[1]

        # All in this order: who waits for a trial's limit holds nothing that another trial waits for.
        async with (
            account.tokens.hold(bound.prompt_tokens, lambda: self.estimate(trial, characters)[0]),
            account.cost.hold(bound.cost_usd, cost),
            self.cost.hold(bound.cost_usd, cost),
        ):
            yield

    def charge(self, trial: str, call: dict[str, Any], bound: Bound) -> None:
        """Book what an answer used, on disk when this returns; what was thrown away has no `characters`."""
        line = {"trial": trial, **call}
        self._append(json.dumps(line) + "\n")
        self._add(line, bound)

    def _append(self, text: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(text)

    def _add(self, line: dict[str, Any], bound: Bound) -> None:
        account = self.account(line["trial"])
        used = Used(**{name: line[name] for name in ("prompt_tokens", "completion_tokens", "cost_usd")})
        account.used += used
        self.used += used
        account.tokens.add(used.prompt_tokens, bound.prompt_tokens)
        for limit in (account.cost, self.cost):
            limit.add(used.cost_usd or 0.0, bound.cost_usd)
        if "characters" in line:
            account.answered += 1
            account.last_tokens = used.prompt_tokens
            account.last_characters = line["characters"]
