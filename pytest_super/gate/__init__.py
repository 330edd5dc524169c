"""What decides a run: its gates, its baseline, its errors. Everything else reads the verdict."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final, Protocol

from pytest_super.errors import SuperError
from pytest_super.store.results import TrialResult

PASSED, FAILED, OPEN = "passed", "FAILED", "open"
CANNOT_TELL: Final = "cannot tell"
# One of several gates decides for all of them: the first of these that one of them has.
WORST_FIRST = (FAILED, OPEN, CANNOT_TELL, PASSED)
# How the lines of a verdict begin.
GATE, INVALID = "gate: ", "invalid: "


@dataclass(frozen=True, kw_only=True)
class Selected:
    """The tasks of a run, by id."""

    ids: Collection[str]
    apart: Collection[str] = frozenset()
    """Those that cannot be compared with the baseline."""
    must_run: Collection[str] = frozenset()
    """Those that run even if the baseline never solved them."""


class Gate(Protocol):
    """A gate on plain figures."""

    @property
    def why_open(self) -> str:
        """What it lacks as long as not all trials have ended."""

    def needs(self, id: str) -> bool:
        """Whether it needs trials of this task."""

    def decide(self, results: Sequence[TrialResult]) -> tuple[str, str]:
        """PASSED or FAILED, and why."""


def require_scipy() -> None:
    """Raises SuperError without scipy, which has the quantiles of distributions."""
    if find_spec("scipy") is None:
        raise SuperError("a comparison needs scipy: pip install 'pytest-super[gate]'")
