"""Proves a sub-problem in kernels: its masked cells are needed for the gold answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from pytest_super.agents.gold import SHOW_ALL, value_of
from pytest_super.errors import InfrastructureError
from pytest_super.kernel.cell import Outcome
from pytest_super.kernel.client import Kernel
from pytest_super.metrics.accuracy import accuracy
from pytest_super.store.step_values import error_of
from pytest_super.store.trajectory import Action, Step
from pytest_super.tasks.subproblems import DerivedTask
from pytest_super.tasks.task import Task
from pytest_super.trial.observation import observation_of
from pytest_super.trial.prefix import pre_execute


class Proof(NamedTuple):
    """The result for one sub-problem."""

    is_proven: bool
    reason: str


class Replay(NamedTuple):
    """One run of a prefix and of the solution's cells."""

    prefix: list[Step]
    steps: list[tuple[str, Step]]
    """Each with its cell, as messages call it."""
    score: float | None
    """Accuracy of the last cell's value; None if the last cell has no value."""

    @property
    def failure(self) -> str:
        """The first cell of the solution that failed, with one of the prefix before it, or ""."""
        failed = [(name, step) for name, step in self.steps if step.outcome != "ok"]
        if not failed:
            return ""
        found = [(f"pre-executed step {step.number}", step) for step in self.prefix if step.outcome != "ok"]
        return ", after ".join(f"{name} failed: {error_of(step)}" for name, step in [*failed[:1], *found[:1]])


def prove(task: DerivedTask, start: Callable[[Task], Kernel]) -> Proof:
    """Run a derived task with and without its masked cells. Raises a final InfrastructureError."""
    try:
        return judge(task, start)
    except InfrastructureError as error:
        if error.is_final:
            raise
        return Proof(False, str(error))


def judge(task: DerivedTask, start: Callable[[Task], Kernel]) -> Proof:
    """Raises InfrastructureError."""
    if not task.has_answer:
        return Proof(False, "its answer is not known")
    replay = run(task, start)
    if replay.score != 1:
        return Proof(False, f"with the masked cells {missed(replay)}")
    replay = run(task, start, without=task.masked_cells)
    numbers = ", ".join(map(str, task.masked_cells))
    cells = f"the masked cell{'s' if len(task.masked_cells) > 1 else ''} {numbers}"
    if replay.score == 1:
        return Proof(False, f"without {cells} the answer is the gold one, too")
    return Proof(True, f"with {cells} the answer is the gold one; without: {missed(replay)}")


def missed(replay: Replay) -> str:
    score = "there is no answer" if replay.score is None else f"accuracy is {replay.score:.2f}"
    return f"{score} ({replay.failure})" if replay.failure else score


def run(task: DerivedTask, start: Callable[[Task], Kernel], *, without: Collection[int] = ()) -> Replay:
    assert task.solution is not None
    assert task.solution.cells is not None
    gold = [f"cell {number}" for number in task.gold_cells]
    dropped = {f"cell {number}" for number in without}
    # `submit` comes after the goal and has no number.
    named = [*gold, *["`submit`"] * (len(task.solution.cells) - len(gold))]
    kept = [pair for pair in zip(named, task.solution.cells, strict=True) if pair[0] not in dropped]
    kernel = start(task)
    try:
        prefix = list(pre_execute(task, kernel))
        steps = run_cells(kernel, [cell for _, cell in kept], task.limits.compute)
        has_ended = len(steps) == len(kept) and not kernel.is_running
        score = score_of(task, kernel, steps[-1]) if has_ended else None
    finally:
        kernel.close()
    return Replay(prefix, [(name, step) for (name, _), step in zip(kept, steps, strict=False)], score)


def run_cells(kernel: Kernel, cells: Sequence[str], seconds: float) -> list[Step]:
    """The steps of the cells, until one ends the kernel or exhausts the time."""
    steps: list[Step] = []
    for number, cell in enumerate(cells, 1):
        if number == len(cells):
            kernel.evaluate(SHOW_ALL)
        result = kernel.execute(cell, timeout=max(seconds, 0.0))
        seconds -= result.seconds
        steps.append(
            Step(
                number=number,
                origin="agent",
                action=Action(type="execute", content=cell),
                observation=observation_of(result),
                outcome=result.outcome.value,
                outputs=result.outputs,
            )
        )
        # A cell that raises can be part of a solution.
        if result.outcome not in (Outcome.OK, Outcome.ERROR):
            break
    return steps


def score_of(task: Task, kernel: Kernel, step: Step) -> float | None:
    try:
        value = value_of(kernel, step)
    except ValueError:
        return None
    return accuracy(task.answer, value, tolerance=task.tolerance)
