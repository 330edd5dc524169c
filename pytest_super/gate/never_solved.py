"""Tasks that a baseline has never solved, which a comparison can do without, as they cannot become worse.

Some of their trials would have been solved. How often follows from the tasks that were solved once (Good
1953, doi 10.1093/biomet/40.3-4.237): each of those trials found a task that was never solved in the others.
`benchmarks/never_solved.py` simulates how often verdicts are wrong then.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import fsum
from typing import Any

from pytest_super.digests import digest
from pytest_super.gate.side import Side, TaskTrials, why_different

# One of so many agents is tried on all tasks.
AUDITED = 10
# Fewer trials do not show what is solved rarely.
LEAST_TRIALS = 10


def is_audited(subject: Mapping[str, Any], baseline: str) -> bool:
    """Whether the runs of a subject try all tasks; `baseline` is the first run of the baseline.

    It is the same for all runs that count together, so that running again changes nothing.
    """
    return int(digest([subject, baseline]), 16) % AUDITED == 0


def with_stand_ins(baseline: Side, candidate: Side) -> Side:
    """The candidate with what stands in place of the tasks that it has left out.

    Its `not_run` then has only the tasks with such a stand-in.
    """
    old, new = baseline.tasks, candidate.tasks
    both = [id for id in new if id in old and not why_different(old[id], new[id])]
    absent = [id for id in candidate.not_run if id in old and id not in new]
    found: dict[str, TaskTrials] = {}
    for name in {old[id].set for id in both} if absent else ():
        ran = [id for id in both if old[id].set == name]
        own = [id for id in absent if old[id].set == name]
        never, rate = never_solved({id: old[id] for id in (*ran, *own)})
        values = [rate] * max(len(new[id].values) for id in ran)
        found |= {id: replace(old[id], values=values, of_runs=[]) for id in own if id in never}
    return replace(candidate, tasks={**new, **found}, not_run=set(found))


def never_solved(tasks: Mapping[str, TaskTrials]) -> tuple[set[str], float]:
    """Find the tasks of one set that need not run, and the value to expect of each of their trials."""
    known = {id: task for id, task in tasks.items() if len(task.values) >= LEAST_TRIALS}
    never = {id for id, task in known.items() if not any(task.values)}
    once = [task for task in known.values() if sum(value > 0 for value in task.values) == 1]
    missed = fsum(task.weight * sum(task.values) / len(task.values) for task in once)
    return never, min(missed / fsum(known[id].weight for id in never), 1.0) if never else 0.0
