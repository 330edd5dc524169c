"""Clips observations for the models of SUPER's agents (section 4.1 of the paper)."""

from __future__ import annotations

# Characters kept from the end of the newest observation and of each earlier one.
LAST = 50_000
EARLIER = 500
# The marks of a clipped beginning in the published prompts.
LAST_MARK = "... (truncated) ..."
EARLIER_MARK = "(truncated) ... "


def clipped(observation: str, limit: int, mark: str = EARLIER_MARK) -> str:
    """The observation, or `mark` and its last `limit` characters when it is longer."""
    surplus = len(observation) - limit
    return mark + observation[surplus:] if surplus > 0 else observation
