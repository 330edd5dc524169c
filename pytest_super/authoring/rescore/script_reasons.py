"""Why script_executed differs between the published code and the paper.

Each condition is lifted in turn and the metric asked again: what must be lifted for a run to count is why it
does not.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_super.kernel.cell import Outcome
from pytest_super.metrics.reference import MIN_SECONDS, reference_script_executed
from pytest_super.metrics.script_executed import script_executed
from pytest_super.metrics.script_runs.cell_runs import Notebook
from pytest_super.store.trajectory import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Entrypoint

    Lift = Callable[[Step], Step]

LONG = 1e9


def script_reasons(
    steps: Sequence[Step], entrypoint: Entrypoint, repository: str | None, *, reference: float | None
) -> Iterator[str]:
    """Reasons where the paper's way says otherwise than the published code, which says `reference`."""
    credited = [number for number, step in enumerate(steps) if counts_in_reference(step, entrypoint)]
    if credited:
        found = (why_not_in_paper(steps[: number + 1], entrypoint, repository) for number in credited)
        yield from dict.fromkeys(found)
    elif any(step.action.type == PROGRAM for step in steps):
        yield "what the agent's program ran is not known"
    elif reference is None:
        yield "the published code has no figure for an entrypoint that is neither a Python nor a shell script"
    else:
        yield why_not_in_reference(first_run(steps, entrypoint, repository), entrypoint)


def counts_in_reference(step: Step, entrypoint: Entrypoint) -> bool:
    # A value that was submitted is no run, and may kill the published scorer.
    return step.action.type != "submit" and reference_script_executed([step], entrypoint.path) == 1.0


def why_not_in_paper(steps: Sequence[Step], entrypoint: Entrypoint, repository: str | None) -> str:
    """Of the last step, which the published code credits."""
    last = steps[-1]
    if last.origin != "agent":
        return f"{place(last)} was pre-executed"
    if last.action.type != "execute":
        return f"{place(last)} is of the type `{last.action.type}`, which runs nothing"
    if not counts_when_lifted(steps, entrypoint, repository):
        return f"{place(last)} {how_it_is_named(steps, entrypoint)}"
    needed = [
        words
        for words in lifts(last, entrypoint)
        if not counts_when_lifted(steps, entrypoint, repository, but=words)
    ]
    return f"{place(last)} {' and '.join(needed)}"


def how_it_is_named(steps: Sequence[Step], entrypoint: Entrypoint) -> str:
    """Of a last cell that does not run the entrypoint."""
    notebook, name = Notebook(), posixpath.basename(entrypoint.path)
    runs = [notebook.read(step.action.content) for step in steps if step.action.type == "execute"][-1]
    others = [run.path for run in runs if posixpath.basename(run.path) == name]
    return f"runs {others[0]}, another file than {entrypoint.path}" if others else "only names the script"


def counts_when_lifted(
    steps: Sequence[Step], entrypoint: Entrypoint, repository: str | None, *, but: str = ""
) -> bool:
    """Whether the last cell counts in the paper's way with all its conditions lifted, or all but one."""
    last = steps[-1]
    for words, lift in lifts(last, entrypoint).items():
        last = last if words == but else lift(last)
    return script_executed([*steps[:-1], last], entrypoint, repository=repository) == 1.0


def lifts(step: Step, entrypoint: Entrypoint) -> dict[str, Lift]:
    """What may keep a cell from counting, each with how to lift it."""
    how = "was left running" if step.outcome == Outcome.TIMED_OUT else f"ended as `{step.outcome}`"
    return {
        how: lambda step: replace(step, outcome=Outcome.OK),
        f"ran {step.seconds:.1f} s, and the task asks for {entrypoint.min_seconds:g}": lambda step: replace(
            step, seconds=LONG
        ),
        "shows a failure": lambda step: replace(step, observation="", outputs=[]),
    }


def first_run(steps: Sequence[Step], entrypoint: Entrypoint, repository: str | None) -> Sequence[Step]:
    """The step with which the paper's way begins to credit, and those that made its cell."""
    for end in range(1, len(steps) + 1):
        if script_executed(steps[:end], entrypoint, repository=repository) == 1.0:
            return steps[:end]
    return steps


def why_not_in_reference(steps: Sequence[Step], entrypoint: Entrypoint) -> str:
    last = steps[-1]
    if last.action.type != "execute":
        return f"the published code does not put {place(last)} together with the cell that it waits for"
    timed = replace(last, started="", ended="", seconds=LONG)
    if reference_script_executed([timed], entrypoint.path) == 1.0:
        return f"{place(last)} took less than the {MIN_SECONDS} s that the published code always asks for"
    if reference_script_executed([replace(timed, observation="")], entrypoint.path) == 1.0:
        return f"{place(last)} shows what the published code takes for a failure"
    return f"{place(last)} runs the script without its file name"


def without_refusals(steps: Sequence[Step], entrypoint: Entrypoint) -> list[Step]:
    """The steps as they would be if the script had refused no arguments."""
    refusal = re.escape(f"{posixpath.basename(entrypoint.path)}: error")
    return [replace(step, observation=re.sub(refusal, "", step.observation)) for step in steps]


def place(step: Step) -> str:
    return f"step {step.number}"
