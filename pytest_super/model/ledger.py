"""What the trials of a run have used of the model, on disk: a new gateway knows what the last one spent."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_super.model.completion import BudgetSpentError, Used
from pytest_super.results import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Of English text and code, at least; of other text more, and of none more than the highest.
TOKENS_PER_CHARACTER = 0.25
HIGHEST = 1.5
# A shorter prompt may be mostly what the provider puts around it.
TELLING_CHARACTERS = 1000


class RunCostError(Exception):
    """The run's cost limit is reached."""


@dataclass(kw_only=True)
class Account:
    """One trial: its limits, and what it used. Costs are US dollars, of the calls whose price is known."""

    token_limit: int | None = None
    cost_limit: float | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    is_priced: bool = False
    """The price of at least one call is known."""
    calls: int = 0
    last_tokens: int = 0
    last_characters: int = 0
    reserved_tokens: int = 0
    reserved_cost: float = 0.0
    answered: int = 0
    """Calls that had an answer or a refusal, since the gateway was started, or were booked before."""

    first: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the only call under way as long as none is booked."""

    def is_spent(self, more: int) -> bool:
        """Whether the token limit is reached with `more` tokens beyond those booked."""
        return self.token_limit is not None and self.prompt_tokens + more >= self.token_limit

    @property
    def used(self) -> Used:
        return Used(
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            cost_usd=self.cost_usd if self.is_priced else None,
        )

    @property
    def tokens_per_character(self) -> float:
        if self.last_characters < TELLING_CHARACTERS:
            return TOKENS_PER_CHARACTER
        return min(HIGHEST, max(TOKENS_PER_CHARACTER, self.last_tokens / self.last_characters))

    def refuse_beyond(self, tokens: int, cost: float) -> None:
        """Raises BudgetSpentError when a call of this size would pass a limit."""
        held = self.prompt_tokens + self.reserved_tokens
        limit = self.token_limit
        if limit is not None and (held >= limit or held + tokens > limit):
            raise BudgetSpentError("tokens")
        spent = self.cost_usd + self.reserved_cost
        if self.cost_limit is not None and (spent >= self.cost_limit or spent + cost > self.cost_limit):
            raise BudgetSpentError("cost")


class Ledger:
    """All accounts of a run, by trial, backed by an append-only file with a line a call."""

    def __init__(self, path: Path, max_cost: float | None) -> None:
        self.max_cost = max_cost
        self.first = asyncio.Lock()
        self._accounts: dict[str, Account] = {}
        for line in read_lines(path):
            self._add(line["trial"], line)
        self._path = path
        # Whether it can be written is known before the first call is paid.
        is_whole = not path.exists() or path.read_bytes()[-1:] in (b"", b"\n")
        self._append("" if is_whole else "\n")

    def account(self, trial: str) -> Account:
        return self._accounts.setdefault(trial, Account())

    @property
    def cost_usd(self) -> float:
        return sum(account.cost_usd for account in self._accounts.values())

    @property
    def is_priced(self) -> bool:
        """The price of at least one call is known; it may be nothing."""
        return any(account.is_priced for account in self._accounts.values())

    def estimate(self, trial: str, characters: int) -> tuple[int, float]:
        """Prompt tokens and cost of a call: those of the trial's last one, and what its text is longer by."""
        account = self.account(trial)
        longer = characters - account.last_characters
        tokens = max(0, account.last_tokens + round(longer * account.tokens_per_character))
        booked = sum(account.prompt_tokens for account in self._accounts.values())
        return tokens, tokens * self.cost_usd / booked if booked else 0.0

    @contextmanager
    def reserve(self, trial: str, characters: int) -> Iterator[None]:
        """Hold what a call is expected to use while it is made, so that calls at once pass no limit together.

        Raises BudgetSpentError and RunCostError: the call must not be made.
        """
        account = self.account(trial)
        tokens, cost = self.estimate(trial, characters)
        account.refuse_beyond(tokens, cost)
        pending = sum(account.reserved_cost for account in self._accounts.values())
        spent = self.cost_usd + pending
        if self.max_cost is not None and (spent >= self.max_cost or spent + cost > self.max_cost):
            raise RunCostError(f"the run has cost ${self.cost_usd:.4f} of the ${self.max_cost:g} it may")
        account.reserved_tokens += tokens
        account.reserved_cost += cost
        try:
            yield
        finally:
            account.reserved_tokens -= tokens
            account.reserved_cost -= cost

    def charge(self, trial: str, characters: int, call: dict[str, Any]) -> None:
        """Book a call, on disk when this returns."""
        line = {"trial": trial, "characters": characters, **call}
        self._append(json.dumps(line) + "\n")
        self._add(trial, line)

    def _append(self, text: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(text)

    def _add(self, trial: str, call: dict[str, Any]) -> None:
        account = self.account(trial)
        account.calls += 1
        account.answered += 1
        account.prompt_tokens += call["prompt_tokens"]
        account.completion_tokens += call["completion_tokens"]
        account.cost_usd += call["cost_usd"] or 0.0
        account.is_priced |= call["cost_usd"] is not None
        account.last_tokens = call["prompt_tokens"]
        account.last_characters = call["characters"]
