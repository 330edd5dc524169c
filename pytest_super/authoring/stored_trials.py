"""The trials of a stored run by their names, and their tasks as far as these have not changed."""

from collections.abc import Collection, Mapping
from pathlib import Path

from pytest_super.errors import SuperError
from pytest_super.session.comparability import has_conditions_of
from pytest_super.store.json_lines import UNREADABLE, damage
from pytest_super.store.results import TrialResult
from pytest_super.store.run_folder import last_results
from pytest_super.tasks.task import Task


def stored_trials(run: Path, names: Collection[str]) -> list[TrialResult]:
    """Choose a run's trials by the names of tasks or trials; all without names. Raises SuperError."""
    try:
        results = last_results(run)
    except UNREADABLE as error:
        raise SuperError(f"{run}: the run cannot be read: {damage(error)}") from None
    if unknown := sorted(set(names) - {name for one in results for name in (one.id, one.name)}):
        raise SuperError(f"{run.name} has no trial of {', '.join(unknown)}")
    return [one for one in results if not names or {one.id, one.name} & set(names)]


def unchanged_task(result: TrialResult, tasks: Mapping[str, Task]) -> Task:
    """Raises SuperError if the task of a stored trial is not what it was."""
    task = tasks.get(result.id)
    if task is None:
        raise SuperError("its task is not among those of --tasks")
    if not has_conditions_of(task, result):
        raise SuperError("its task has changed since")
    return task
