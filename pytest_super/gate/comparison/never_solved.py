"""Tasks that a run left out because the baseline never solved them, and which runs leave none out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_super.digests import digest
from pytest_super.gate.comparison.matching import why_different
from pytest_super.gate.statistics.never_solved import never_solved

if TYPE_CHECKING:
    from pytest_super.gate.comparison.side import Side, TaskTrials

# One of so many agents is tried on all tasks.
AUDITED = 10


def is_audited(subject: Mapping[str, Any], baseline: str) -> bool:
    """Whether the runs of a subject try all tasks; `baseline` is the first run of the baseline.

    It is the same for all runs that count together, so that running again changes nothing.
    """
    return int(digest([subject, baseline]), 16) % AUDITED == 0


def with_stand_ins(baseline: Side, candidate: Side) -> Side:
    """The candidate with what stands in place of the tasks that it has left out.

    Its `not_run` then has only the tasks with such a stand-in.
    """
    if not candidate.not_run:
        return candidate
    old, new = baseline.tasks, candidate.tasks
    both = [id for id in new if id in old and not why_different(old[id], new[id])]
    absent = [id for id in candidate.not_run if id in old and id not in new]
    found: dict[str, TaskTrials] = {}
    for name in {old[id].set for id in both}:
        ran = [id for id in both if old[id].set == name]
        own = [id for id in absent if old[id].set == name]
        never, rate = never_solved_of({id: old[id] for id in (*ran, *own)})
        epochs = max(len(new[id].values) for id in ran)
        found |= {id: stand_in(old[id], rate, epochs) for id in own if id in never}
    return replace(candidate, tasks={**new, **found}, not_run=set(found))


def never_solved_of(tasks: Mapping[str, TaskTrials]) -> tuple[set[str], float]:
    """Find the tasks of one set that need not run, and the value to expect of each of their trials."""
    found = never_solved([one.values for one in tasks.values()], [one.weight for one in tasks.values()])
    ids = list(tasks)
    return {ids[place] for place in found.tasks}, found.rate


def stand_in(task: TaskTrials, rate: float, epochs: int) -> TaskTrials:
    return replace(
        task,
        values=[rate] * epochs,
        of_runs=[],
        replayed={},
        stops={},
        causes={},
        cost_usd=None,
        tokens=0.0,
        seconds=0.0,
    )
