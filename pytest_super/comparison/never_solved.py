"""Tasks that a run left out because the baseline never solved them, and which runs leave none out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_super.digests import digest
from pytest_super.statistics.never_solved import never_solved

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pytest_super.comparison.side import Side, TaskTrials

# One in so many runs tries all tasks.
AUDITED = 10


def is_audited(subject: Mapping[str, Any], baseline: str) -> bool:
    """Whether the runs of a subject try all tasks; `baseline` is the first run of the baseline.

    It is the same for all runs that count together, so that running again changes nothing.
    """
    return int(digest([subject, baseline]), 16) % AUDITED == 0


def stand_ins(baseline: Side, candidate: Side, compared: Collection[str]) -> dict[str, TaskTrials]:
    """What stands in place of the tasks that the candidate has not run, set by set.

    `compared` are the ids of the tasks that both have and that can be compared.
    """
    found: dict[str, TaskTrials] = {}
    for name in {baseline.tasks[id].set for id in compared}:
        ran = [id for id in compared if baseline.tasks[id].set == name]
        absent = [
            id
            for id in candidate.not_run
            if id in baseline.tasks and id not in candidate.tasks and baseline.tasks[id].set == name
        ]
        tasks = [baseline.tasks[id] for id in [*ran, *absent]]
        never = never_solved([task.values for task in tasks], [task.weight for task in tasks])
        epochs = max(len(candidate.tasks[id].values) for id in ran)
        found |= {
            id: stand_in(baseline.tasks[id], never.rate, epochs)
            for place, id in enumerate(absent, len(ran))
            if place in never.tasks
        }
    return found


def stand_in(task: TaskTrials, rate: float, epochs: int) -> TaskTrials:
    return replace(task, values=[rate] * epochs, of_runs=[], stops={}, cost_usd=None, tokens=0.0, seconds=0.0)
