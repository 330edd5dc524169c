"""The table at the end of a run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_super.authoring.generate.record import KEPT, REPORT
from pytest_super.authoring.generate.refusal import REASONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.authoring.generate.generation import Generation


def lines(run: Generation) -> Iterator[str]:
    """The numbers of repositories that were kept and dropped, by reason."""
    outcomes = run.outcomes.values()
    reasons = Counter(outcome.reason for outcome in outcomes if outcome.outcome != KEPT)
    yield ""
    yield row("repositories", len(run.named))
    yield row("kept", len(outcomes) - reasons.total())
    yield row("dropped", reasons.total())
    for reason, meaning in REASONS.items():
        if reasons[reason]:
            yield row(f"  {reason}", reasons[reason], meaning)
    if left := len(run.named) - len(outcomes):
        yield row("not looked at", left)
    yield ""
    yield f"{run.asker.asked} answers of {run.settings.model}{cost(run)}"
    yield f"tasks and {REPORT}: {run.settings.output}"


def row(name: str, number: int, meaning: str = "") -> str:
    return f"{name:<24}{number:>6}  {meaning}".rstrip()


def cost(run: Generation) -> str:
    dollars = run.record.cost()
    return "" if dollars is None else f"; all runs into this folder have cost ${dollars:.4f}"
