"""The proof of a sub-problem, in kernels: with the masked cells the gold answer, without them not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_super.agents.gold import error_of, value_of
from pytest_super.errors import SuperError
from pytest_super.kernel.cell import Outcome
from pytest_super.metrics.accuracy import accuracy
from pytest_super.store.trajectory import Action, Step, now
from pytest_super.trial.observation import observation_of
from pytest_super.trial.prefix import pre_execute

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from pytest_super.kernel.client import Kernel
    from pytest_super.tasks.task import Derivation, Task


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What came of one sub-problem."""

    id: str
    is_proven: bool
    reason: str


@dataclass(frozen=True, kw_only=True)
class Replay:
    """One run of a prefix and of cells after it."""

    prefix: list[Step]
    steps: list[Step]
    names: list[str]
    """Of the cells of `steps`, for a person."""
    score: float | None
    """The accuracy of the last cell's value; None where it has none."""

    @property
    def failure(self) -> str:
        """The first cell after the prefix that failed, "" where none did."""
        for name, step in zip(self.names, self.steps, strict=True):
            if step.outcome != Outcome.OK:
                return f"{name} failed: {error_of(step)}"
        return ""


def prove(task: Task, start: Callable[[Task], Kernel]) -> Proof:
    """Run a derived task twice, each time in a kernel of its own, which `start` makes; it is closed here.

    Raises InfrastructureError when a sandbox or a prefix cannot be run at all.
    """
    derivation = task._derivation
    assert derivation is not None
    if "answer" not in task.model_fields_set:
        return Proof(id=task.id, is_proven=False, reason="its answer is not known")
    trouble = trouble_with_mask(task, derivation, start)
    if trouble:
        return Proof(id=task.id, is_proven=False, reason=trouble)
    replay = run(task, derivation, start, without=derivation.masked)
    numbers = ", ".join(map(str, derivation.masked))
    cells = f"the masked cell{'s' if len(derivation.masked) > 1 else ''} {numbers}"
    if replay.score == 1:
        return Proof(id=task.id, is_proven=False, reason=f"without {cells} the answer is the gold one, too")
    return Proof(
        id=task.id,
        is_proven=True,
        reason=f"with {cells} the answer is the gold one; without: {missed(replay)}",
    )


def trouble_with_mask(task: Task, derivation: Derivation, start: Callable[[Task], Kernel]) -> str:
    """Why the prefix, the masked cells and the goal do not give the gold answer; "" when they do."""
    replay = run(task, derivation, start)
    if trouble := broken_prefix(derivation, replay.prefix):
        return trouble
    return "" if replay.score == 1 else f"with the masked cells {missed(replay)}"


def missed(replay: Replay) -> str:
    score = "there is no answer" if replay.score is None else f"accuracy is {replay.score:.2f}"
    return f"{score} ({replay.failure})" if replay.failure else score


def broken_prefix(derivation: Derivation, steps: Sequence[Step]) -> str:
    """A cell that failed behind the first masked one; a failure before it may be what is to be solved."""
    if not derivation.is_computed:
        return ""
    own = steps[len(steps) - len(derivation.prefix) :]
    for number, step in zip(derivation.prefix, own, strict=True):
        if number > derivation.masked[0] and step.outcome not in (None, Outcome.OK):
            return f"the pre-executed cell {number} failed: {error_of(step)}: state `pre_execute` without it"
    return ""


def run(
    task: Task, derivation: Derivation, start: Callable[[Task], Kernel], *, without: Collection[int] = ()
) -> Replay:
    assert task.solution is not None
    assert task.solution.cells is not None
    gold = [f"cell {number}" for number in derivation.gold]
    dropped = {f"cell {number}" for number in without}
    # What comes after the goal has no number.
    named = [*gold, *["`submit`"] * (len(task.solution.cells) - len(gold))]
    kept = [pair for pair in zip(named, task.solution.cells, strict=True) if pair[0] not in dropped]
    kernel = start(task)
    try:
        prefix = list(pre_execute(task, kernel))
        steps = run_cells(kernel, [cell for _, cell in kept], task.limits.compute)
    finally:
        kernel.close()
    names = [name for name, _ in kept[: len(steps)]]
    score = score_of(task, steps[-1]) if len(steps) == len(kept) else None
    return Replay(prefix=prefix, steps=steps, names=names, score=score)


def run_cells(kernel: Kernel, cells: Sequence[str], seconds: float) -> list[Step]:
    """The steps of the cells, up to one that leaves no kernel for the next or no time."""
    steps: list[Step] = []
    for number, cell in enumerate(cells, 1):
        started = now()
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
                started=started,
                ended=now(),
                seconds=result.seconds,
            )
        )
        if result.outcome not in (Outcome.OK, Outcome.ERROR):
            break
    return steps


def score_of(task: Task, step: Step) -> float | None:
    try:
        return accuracy(task.answer, value_of(step), tolerance=task.tolerance)
    except SuperError:
        return None
