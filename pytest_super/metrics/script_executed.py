"""Script-executed (SUPER, 3.3.2 and B.2): whether the agent ran the entrypoint, long enough and well."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from pytest_super.metrics.metric import Metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_super.metrics.evidence import Evidence
    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Entrypoint, Task


def script_executed(
    steps: Sequence[Step], entrypoint: Entrypoint | None, *, repository: str | None = None
) -> float | None:
    """1.0 if a cell of the agent ran the entrypoint, ended well and lasted `min_seconds`, else 0.0.

    None for a task without an entrypoint, and instead of 0.0 if a program may have run it unseen (see
    `may_hide_run`). To run means to start it as a script, module, executable or notebook by a shell line,
    a magic or a Python call of the cell. A run in the background counts if the shell waits for it. A cell
    that timed out counts if the agent waited for its end. A run fails if it printed an exception, refused
    its arguments or could not be started (see `failures`). `repository` is the repository's folder in the
    sandbox's working directory ("" for that directory itself), or None; clones are read from the cells.
    Pre-executed cells are never credited, but their effects (`%cd`, names, clones) are followed.
    """
    if entrypoint is None:
        return None
    # Not at the top: the readers of cells take time to load, and every session has this metric.
    from pytest_super.metrics.script_runs.programs import may_hide_run
    from pytest_super.metrics.script_runs.trial_runs import ran_entrypoint

    if ran_entrypoint(steps, entrypoint, repository=repository):
        return 1.0
    return None if any(may_hide_run(step, entrypoint.min_seconds) for step in steps) else 0.0


def _has_entrypoint(task: Task) -> bool:
    return task.entrypoint is not None


def _of_trial(task: Task, evidence: Evidence) -> float | None:
    return script_executed(evidence.steps, task.entrypoint, repository=evidence.repository)


SCRIPT_EXECUTED = Metric(
    name="script_executed",
    title="executed",
    applies=_has_entrypoint,
    compute=_of_trial,
    reference=attrgetter("script_executed"),
    best=1.0,
    headline_of=frozenset({"auto"}),
)
