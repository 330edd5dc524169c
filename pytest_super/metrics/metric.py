"""One metric: its name, where it applies, how it is computed, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from pytest_super.metrics.evidence import Evidence
from pytest_super.metrics.reference import ReferenceScores
from pytest_super.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class Metric:
    """An entry of the registry. Only `name` and `compute` are required."""

    name: str
    """Lower-case letters, digits and `_`: its key in the results and its name in the gate."""
    compute: Callable[[Task, Evidence], float | None]
    """The value for one trial; None if it is not known. An exception makes the trial an error."""
    applies: Callable[[Task], bool] = lambda _task: True
    """Called before the trial. Where it is false the value is None and `compute` is not called."""
    title: str = ""
    """Heading of its column in the terminal; by default the name."""
    format: str = ".3f"
    """Format of a mean in the terminal."""
    higher_is_better: bool = True
    best: float | None = None
    """The value of a perfect trial, if there is one. `verify` requires it of the gold solution."""
    is_quiet: bool = False
    """Where every trial has the best value, it has no column and is not among a trial's figures."""
    worst: float | None = None
    """The value of an error in the gate: by default 0, or infinity if lower is better."""
    version: int | Callable[[Task], int] = 1
    """Count it up when the same trial gets another value: scores of several versions are not compared. A
    function counts it up only for the tasks for which that can happen."""
    headline_of: frozenset[str] = frozenset()
    """The sets of tasks in which a trial is solved when this metric is `best`."""
    reference: Callable[[ReferenceScores], float | None] | None = None
    """Its value under `--super-scoring=reference`; None if the published code does not have this metric."""

    def is_told(self, value: float | None) -> bool:
        return value is not None and not (self.is_quiet and value == self.best)

    def version_for(self, task: Task) -> int:
        return self.version(task) if callable(self.version) else self.version

    @property
    def heading(self) -> str:
        return self.title or self.name

    @property
    def value_of_error(self) -> float:
        if self.worst is not None:
            return self.worst
        return 0.0 if self.higher_is_better else inf
