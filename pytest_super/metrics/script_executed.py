"""Script-executed (SUPER, 3.3.2 and B.2): whether the agent ran the entrypoint, long enough and well."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from pytest_super.metrics.evidence import Evidence
from pytest_super.metrics.metric import Metric
from pytest_super.metrics.script_runs.process_runs import ProcessRun
from pytest_super.store.trajectory import Step
from pytest_super.tasks.task import Entrypoint, Task


def script_executed(
    steps: Sequence[Step],
    entrypoint: Entrypoint | None,
    *,
    repository: str | None = None,
    files_known: bool = True,
) -> float | None:
    """1.0 if the agent ran the entrypoint for at least `min_seconds` and it ended well, else 0.0.

    None for a task without an entrypoint, and instead of 0.0 if a program may have run it unseen. Where no
    processes were observed, the text of cells decides. `repository` is the repository's folder in the
    working directory ("" for that directory itself), or None; for `files_known` see `Evidence`.
    """
    if entrypoint is None:
        return None
    # Not at the top: the readers of cells take time to load, and every session has this metric.
    from pytest_super.metrics.script_runs.process_runs import is_observed, may_hide_run, process_runs
    from pytest_super.metrics.script_runs.trial_runs import run_verdicts

    seen = any(run.counts for run in process_runs(steps, entrypoint, repository=repository))
    if seen or "" in run_verdicts(steps, entrypoint, repository=repository, files_known=files_known):
        return 1.0
    hides = not is_observed(steps) and any(may_hide_run(step, entrypoint.min_seconds) for step in steps)
    return None if hides else 0.0


def entrypoint_run(task: Task, evidence: Evidence) -> ProcessRun | None:
    """The observed run of the entrypoint: one that counts, else the longest; None without one."""
    from pytest_super.metrics.script_runs.process_runs import process_runs

    if task.entrypoint is None:
        return None
    runs = process_runs(evidence.steps, task.entrypoint, repository=evidence.repository)
    return max(runs, key=lambda run: (run.counts, run.process.seconds or 0.0), default=None)


SCRIPT_EXECUTED = Metric(
    name="script_executed",
    title="executed",
    applies=lambda task: task.entrypoint is not None,
    compute=lambda task, trial: script_executed(
        trial.steps, task.entrypoint, repository=trial.repository, files_known=trial.files_known
    ),
    reference=attrgetter("script_executed"),
    best=1.0,
    headline_of=frozenset({"auto"}),
)
