"""How often each task of a run is tried at most, and what its comparison with a baseline can find.

Known before anything is spent. A run without a baseline loads none of the heavy modules that compute it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pytest_super.comparison.comparison import Confidence
    from pytest_super.comparison.side import Side, TaskTrials
    from pytest_super.option_types import Epochs
    from pytest_super.statistics.decision import Plan
    from pytest_super.statistics.epochs import Schedule


@dataclass(frozen=True, kw_only=True)
class SetPlan:
    """Of one set: its tasks that the baseline has."""

    schedule: Schedule
    finds: Plan
    """If each task runs in all its epochs."""


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """How often each task runs at most, and when the run is compared."""

    epochs: Mapping[str, int]
    """By task id."""
    least: int
    """The epoch after which the first look comes. There is one after each further epoch."""
    sets: Mapping[str, SetPlan] = field(default_factory=dict)
    """Those of which the baseline has tasks; none without a baseline."""

    def confidence_after(self, epoch: int) -> Confidence:
        """How sure the bounds of the look after an epoch must be."""
        from pytest_super.comparison.comparison import by_one_look

        @cache
        def confidences(set_name: str, sets: int) -> list[float]:
            return self.sets[set_name].schedule.confidences(by_one_look(set_name, sets))

        def confidence(set_name: str, sets: int) -> float:
            known = confidences(set_name, sets)
            # A set whose tasks need fewer epochs than others has had its last look before.
            return known[min(epoch - self.least, len(known) - 1)]

        return confidence


def plan_of(side: Side, ids: Collection[str], epochs: Epochs, margin: float) -> RunPlan:
    """Of the tasks `ids`. Those that the baseline does not have run as rarely as possible."""
    common = {id: task for id, task in side.tasks.items() if id in ids}
    most = dict.fromkeys(ids, epochs.least)
    sets = {}
    for name in sorted({task.set for task in common.values()}):
        own = {id: task for id, task in common.items() if task.set == name}
        sets[name] = set_plan(list(own.values()), epochs, margin)
        most |= dict(zip(own, sets[name].schedule.epochs, strict=True))
    return RunPlan(sets=sets, epochs=most, least=epochs.least)


def set_plan(tasks: Sequence[TaskTrials], epochs: Epochs, margin: float) -> SetPlan:
    from pytest_super.statistics.decision import plan
    from pytest_super.statistics.epochs import schedule

    values, weights = [task.values for task in tasks], [task.weight for task in tasks]
    found = schedule(values, weights, least=epochs.least, most=epochs.most, margin=margin)
    return SetPlan(schedule=found, finds=plan(values, weights, epochs=found.epochs, margin=margin))
