"""What was found about unsolved trials, as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.authoring.why.search import Lost, NotLost, OnlyAgain
from pytest_super.report.text import describe
from pytest_super.words import one_line, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.authoring.why.rounds import Searched
    from pytest_super.authoring.why.search import Answer
    from pytest_super.authoring.why.trials import LostTrial

LONGEST_ACTION = 100


LOST = "lost at step {step} of {steps}: gold finishes{cells} from the state after {before}, not from its own"
NOT_LOST = "not lost: gold finishes{cells} from the last state; {why}"
ONLY_AGAIN = "gold finishes from the last state only by doing everything again; {why}"
CANNOT_TELL = "cannot tell: {why}"


def answer_lines(searched: Searched) -> Iterator[str]:
    trial, answer = searched.trial, searched.answer
    assert answer is not None
    yield one_line(f"{trial.result.name}  {words_of(trial, answer)}")
    if isinstance(answer, Lost):
        step = trial.steps[answer.step - 1]
        action = f"{step.action.type}: {step.action.content.strip()}"
        yield f"  step {step.number} was {shortened(one_line(action), LONGEST_ACTION)}"
    if isinstance(answer, OnlyAgain) and answer.why:
        yield one_line(f"  from where the landmarks say that it was: {answer.why}")


def words_of(trial: LostTrial, answer: Answer) -> str:
    steps = trial.steps
    if isinstance(answer, Lost):
        before = f"step {steps[answer.step - 2].number}" if answer.step > 1 else "no step"
        lost, last = steps[answer.step - 1].number, steps[-1].number
        return LOST.format(step=lost, steps=last, cells=cells_of(answer.cell), before=before)
    if isinstance(answer, NotLost):
        return NOT_LOST.format(cells=cells_of(answer.cell), why=describe(trial.result))
    if isinstance(answer, OnlyAgain):
        return ONLY_AGAIN.format(why=describe(trial.result))
    return CANNOT_TELL.format(why=answer.why)


def cells_of(cell: int) -> str:
    return f" with its cells from {cell + 1} on" if cell else ""


def refused_line(name: str, why: str) -> str:
    return one_line(f"{name}  {CANNOT_TELL.format(why=why)}")
