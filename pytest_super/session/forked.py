"""A fork next to the trial from which it goes on: whether the replayed steps are as recorded."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.model.protocols.folds import fold
from pytest_super.model.request_difference import RequestDifference, without_equal
from pytest_super.store.trajectory import read_trajectory
from pytest_super.words import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_super.store.results import TrialResult
    from pytest_super.store.trajectory import Step


def recorded_steps(start: str, task: str) -> list[Step]:
    """`start` is the folder with which a fork of the task begins."""
    return read_trajectory(Path(start) / "trials" / task / "1.0" / "trajectory.jsonl")


def replayed_otherwise(recorded: Sequence[Step], replayed: Sequence[Step]) -> str:
    """The first step that is not as recorded, and how it differs; "" if all are."""
    for before, now in zip_longest(recorded, replayed[: len(recorded)]):
        was, is_ = compared_lines(before), compared_lines(now)
        if was != is_:
            was, is_ = without_equal(was, is_)
            return str(RequestDifference(place=f"step {before.number}", before=was, now=is_))
    return ""


def compared_lines(step: Step | None) -> list[str]:
    """The action and the observation, without what recorded requests are not compared by, such as durations.

    None is a step that was not taken.
    """
    if step is None:
        return []
    return fold(f"{step.action.type}\n{step.action.content}\n{step.observation}")[0].splitlines()


def fork_lines(forked_from: str, results: Sequence[TrialResult]) -> Iterator[str]:
    """How many trials replayed the steps as recorded, and where the others first did not."""
    equal = sum(one.is_scored and not one.fork_difference for one in results)
    yield one_line(
        f"forked from {forked_from}: {equal} of {counted(len(results), 'trial')} replayed it as recorded"
    )
    for one in results:
        if one.fork_difference:
            yield one_line(f"  {one.name}: {one.fork_difference}")
