"""A fork next to the trial from which it goes on: whether the replayed steps are as recorded."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from pytest_super.model.protocols.canonical import changed_line
from pytest_super.model.protocols.folds import fold
from pytest_super.store.results import TrialResult
from pytest_super.store.trajectory import Step, read_trajectory
from pytest_super.words import counted, one_line

# Of the digest of a file.
DIGITS = 12


def recorded_steps(start: str, task: str) -> list[Step]:
    """`start` is the folder with which a fork of the task begins."""
    return read_trajectory(Path(start) / "trials" / task / "1.0" / "trajectory.jsonl")


def replayed_otherwise(recorded: Sequence[Step], replayed: Sequence[Step]) -> str:
    """The first step that is not as recorded, and how it differs; "" if all are."""
    for before, now in zip_longest(recorded, replayed[: len(recorded)]):
        knows_files = now is None or None not in (before.files, now.files)
        if changed := changed_line(compared_lines(before, knows_files), compared_lines(now, knows_files)):
            return f"step {before.number}: {changed}"
    return ""


def compared_lines(step: Step | None, knows_files: bool) -> list[str]:
    """The action and the observation, without what recorded requests are not compared by, such as durations.

    And the changed files, unless only one of the steps knows them. None is a step that was not taken.
    """
    if step is None:
        return []
    shown = fold(f"{step.action.type}\n{step.action.content}\n{step.observation}")[0].splitlines()
    files = (step.files or {}).items() if knows_files else ()
    return [*shown, *(f"{path}: {content[:DIGITS] or 'removed'}" for path, content in files)]


def fork_lines(forked_from: str, results: Sequence[TrialResult]) -> Iterator[str]:
    """How many trials replayed the steps as recorded, and where the others first did not."""
    equal = sum(one.is_scored and not one.fork_difference for one in results)
    yield one_line(
        f"forked from {forked_from}: {equal} of {counted(len(results), 'trial')} replayed it as recorded"
    )
    for one in results:
        if one.fork_difference:
            yield one_line(f"  {one.name}: {one.fork_difference}")
