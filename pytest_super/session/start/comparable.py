"""Which tasks of a run can be compared with its baseline: told before the first trial is paid for."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_super.errors import SuperError
from pytest_super.gate import Selected
from pytest_super.gate.baseline_file import read_side
from pytest_super.gate.side import Side, why_different
from pytest_super.session.run import Run
from pytest_super.session.start.trial_digests import expected_of, once_in_a_run
from pytest_super.session.trial.item import TaskItem
from pytest_super.session.trial.start_ahead import OUTCOMES
from pytest_super.store.json_lines import read_json
from pytest_super.words import counted, named, one_line

NOTE = "comparable.json"
# So many tasks are named for each reason.
MOST_NAMED = 5
WHAT_TO_DO = (
    "put back the conditions that differ, or make a new baseline from a run of the agent as it was "
    "before its change (`pytest-super baseline update`; a changed agent would be compared with itself), "
    "or select only those {comparable}"
)
# A run of which the baseline has less than this share of the tasks would cost much and decide little.
LEAST_COMPARED = 0.5


def note_comparable(items: Sequence[TaskItem], run: Run) -> None:
    """Note which tasks of a run with a baseline cannot be compared. Later calls change nothing."""
    tasks = {item.task.id: item for item in items}.values()
    paths = {"baseline": run.settings.baseline, "anchor": run.settings.anchor}
    sides = {name: path for name, path in paths.items() if path is not None}
    once_in_a_run(
        run.path / NOTE, lambda: {name: noted(tasks, read_side(path)) for name, path in sides.items()}
    )


def refuse_few(run: Run) -> None:
    """Raises SuperError if too few tasks can be compared for a verdict."""
    for note in read_json(run.path / NOTE).values():
        found, tasks = note["left_out"], note["tasks"]
        comparable = len(tasks) - sum(map(len, found.values()))
        if comparable < LEAST_COMPARED * len(tasks):
            can = (
                f"only {comparable} of {counted(len(tasks), 'task')} can be compared with {note['baseline']}"
            )
            what_to_do = WHAT_TO_DO.format(comparable=comparable)
            raise SuperError(f"{can}, so nothing has run: {'; '.join(reasons(found))}: {what_to_do}")


def noted(items: Collection[TaskItem], baseline: Side) -> dict[str, Any]:
    """The name of the baseline, and the ids of the tasks: all, and those that cannot be compared, by reason.

    Only their run can tell of those that are `unknown`.
    """
    found: dict[str | None, list[str]] = {}
    for item in items:
        found.setdefault(why_not(item, baseline), []).append(item.task.id)
    unknown, _ = found.pop(None, []), found.pop("", [])
    tasks = [item.task.id for item in items]
    return {"baseline": baseline.name, "tasks": tasks, "left_out": found, "unknown": unknown}


def selected_of(run: Path) -> Selected:
    """The tasks of a run with a baseline."""
    note = read_json(run / NOTE)["baseline"]
    apart = {id for ids in note["left_out"].values() for id in ids}
    return Selected(ids=set(note["tasks"]), apart=apart, must_run=set(note["unknown"]))


def why_not(item: TaskItem, baseline: Side) -> str | None:
    """ "" if the task can be compared, None if that is not known."""
    from pytest_super.session.trial.kernels import has_foreign_kernel

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


def left_out_lines(run: Path) -> Iterator[str]:
    """The tasks of a run that will not be compared."""
    for side, note in read_json(run / NOTE).items():
        of = "" if side == "baseline" else f" with {note['baseline']}"
        for reason in reasons(note["left_out"]):
            yield one_line(f"not compared{of}: {reason}")
