"""Clips observations for the models of SUPER's agents (section 4.1 of the paper)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_super.store.trajectory import Step

# Characters kept from the end of the newest observation and of each earlier one.
LAST = 50_000
EARLIER = 500
# The marks of a clipped beginning in the published prompts.
LAST_MARK = "... (truncated) ..."
EARLIER_MARK = "(truncated) ... "


def clipped_observations(steps: Sequence[Step]) -> list[str]:
    """The observation of each step. The newest one is shown at length."""
    earlier = [clipped(step.observation, EARLIER, EARLIER_MARK) for step in steps[:-1]]
    return earlier + [clipped(step.observation, LAST, LAST_MARK) for step in steps[-1:]]


def clipped(observation: str, limit: int, mark: str) -> str:
    """The observation, or `mark` and its last `limit` characters when it is longer."""
    surplus = len(observation) - limit
    return mark + observation[surplus:] if surplus > 0 else observation
