"""What decides a run: its gates, its baseline, its errors. Everything else reads the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_super.store.results import TrialResult


class Gate(Protocol):
    """A gate on plain figures."""

    @property
    def why_open(self) -> str:
        """What it lacks as long as not all trials have ended."""

    def decide(self, results: Sequence[TrialResult]) -> tuple[str, str]:
        """PASSED or FAILED, and why."""
