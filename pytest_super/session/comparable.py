"""Which tasks of a run can be compared with its baseline: told before the first trial is paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.comparison.baseline import read_side
from pytest_super.errors import SuperError
from pytest_super.session.expected import expected_of, once_in_a_run, read_note
from pytest_super.session.start_ahead import OUTCOMES
from pytest_super.words import counted, named, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_super.comparison.side import Side
    from pytest_super.session.item import TaskItem
    from pytest_super.session.run import Run

NOTE = "comparable.json"
# So many tasks are named for each reason.
MOST_NAMED = 5
WHAT_TO_DO = "make the baseline anew (`pytest-super baseline update`), or go on with --super-min-compared=0"


def refuse_few(items: Sequence[TaskItem], run: Run) -> None:
    """Note which tasks cannot be compared. Raises SuperError if the others are too few to decide."""
    assert run.settings.baseline is not None
    path, tasks = run.settings.baseline, {item.task.id: item for item in items}
    note = once_in_a_run(run.path / NOTE, lambda: noted(tasks.values(), read_side(path)))
    found = note["left_out"]
    comparable = len(tasks) - sum(map(len, found.values()))
    if comparable < run.settings.min_compared * len(tasks):
        can = f"only {comparable} of {counted(len(tasks), 'task')} can be compared with {note['baseline']}"
        raise SuperError(f"{can}, so nothing has run: {'; '.join(reasons(found))}: {WHAT_TO_DO}")


def noted(items: Iterable[TaskItem], baseline: Side) -> dict[str, Any]:
    """The name of the baseline, and the ids of the tasks that cannot be compared, by the reason.

    Of those that are `unknown` it is not known before they run.
    """
    found: dict[str | None, list[str]] = {}
    for item in items:
        found.setdefault(why_not(item, baseline), []).append(item.task.id)
    unknown, _ = found.pop(None, []), found.pop("", [])
    return {"baseline": baseline.name, "left_out": found, "unknown": unknown}


def why_not(item: TaskItem, baseline: Side) -> str | None:
    """ "" if the task can be compared, None if that is not known."""
    # Not at the top, for sessions without a baseline: they need no scipy.
    from pytest_super.comparison.comparison import why_different
    from pytest_super.session.kernels import has_foreign_kernel

    if item.task.id not in baseline.tasks:
        return f"not in {baseline.name}"
    if has_foreign_kernel(item):
        return None
    try:
        return why_different(baseline.tasks[item.task.id], expected_of(item))
    # What a hook raises here it raises in the trial as well, which then reports it.
    except (Exception, *OUTCOMES):
        return None


def reasons(found: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for reason, ids in found.items():
        yield f"{reason}, {counted(len(ids), 'task')}: {named(sorted(ids), MOST_NAMED)}"


def not_surely_compared(run: Path) -> set[str]:
    """The ids of the tasks of a run that cannot be compared, or perhaps not."""
    note = read_note(run / NOTE)
    return {*note["unknown"], *(id for ids in note["left_out"].values() for id in ids)}


def left_out_lines(run: Path) -> Iterator[str]:
    """The tasks of a run that will not be compared."""
    for reason in reasons(read_note(run / NOTE)["left_out"]):
        yield one_line(f"not compared: {reason}")
