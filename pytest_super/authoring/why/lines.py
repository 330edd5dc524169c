"""What was found about unsolved trials, as lines of text."""

from collections.abc import Iterator
from typing import Any

from pytest_super.authoring.why.rounds import Searched
from pytest_super.authoring.why.searches import (
    CannotTell,
    Lost,
    NoneWrong,
    NotLost,
    OnlyAgain,
    WrongBodies,
    WrongTogether,
)
from pytest_super.authoring.why.trials import LostTrial
from pytest_super.report.failure_line import describe
from pytest_super.store.results import TrialResult
from pytest_super.words import named, one_line, shortened

LONGEST_ACTION = 100
MOST_FILES = 3

LOST = "lost at step {step} of {steps}: gold finishes{cells} from the state after {before}, not from its own"
CANNOT_TELL = "cannot tell: {why}"


def answer_lines(searched: Searched) -> Iterator[str]:
    result, answer = searched.trial.result, searched.answer
    yield one_line(f"{result.name}  {words_of(searched)}")
    if isinstance(answer, Lost):
        assert isinstance(searched.trial, LostTrial)
        step = searched.trial.steps[answer.step - 1]
        if step.files is not None:
            yield one_line(f"  step {step.number} changed {named(list(step.files), MOST_FILES) or 'no file'}")
        action = f"{step.action.type}: {step.action.content.strip()}"
        yield f"  step {step.number} was {shortened(one_line(action), LONGEST_ACTION)}"
    if isinstance(answer, OnlyAgain) and answer.why:
        yield one_line(f"  from where the landmarks say that it was: {answer.why}")
    if searched.difference:
        yield one_line(f"  not all steps were replayed as recorded: {searched.difference}")
    if isinstance(answer, WrongTogether) and answer.alone:
        yield f"  wrong alone: {', '.join(answer.alone)}"


def lost_step(searched: Searched) -> int | None:
    """The number of the step that lost the task, if one did."""
    trial, answer = searched.trial, searched.answer
    if not (isinstance(answer, Lost) and isinstance(trial, LostTrial)):
        return None
    return trial.steps[answer.step - 1].number


def words_of(searched: Searched) -> str:
    trial, answer = searched.trial, searched.answer
    if isinstance(answer, Lost):
        assert isinstance(trial, LostTrial)
        steps = trial.steps
        before = f"step {steps[answer.step - 2].number}" if answer.step > 1 else "no step"
        number, last = steps[answer.step - 1].number, steps[-1].number
        return LOST.format(step=number, steps=last, cells=cells_of(answer.cell), before=before)
    return other_words(trial.result, answer, len(trial.task.functions))


def other_words(result: TrialResult, answer: Any, bodies: int) -> str:
    match answer:
        case NotLost():
            return f"not lost: gold finishes{cells_of(answer.cell)} from the last state; {describe(result)}"
        case OnlyAgain():
            again = "gold finishes only by doing everything again from the last state, which gave no help"
            return f"{again}; {describe(result)}"
        case WrongBodies():
            return f"wrong bodies ({len(answer.targets)} of {bodies}): {', '.join(answer.targets)}"
        case WrongTogether():
            return f"right alone and wrong together: {', '.join(answer.others)}"
        case NoneWrong():
            return f"not lost: all bodies are right when they are graded again; {describe(result)}"
        case CannotTell():
            return CANNOT_TELL.format(why=answer.why)
    raise AssertionError(answer)


def cells_of(cell: int) -> str:
    return f" with its cells from {cell + 1} on" if cell else ""


def refused_line(name: str, why: str) -> str:
    return one_line(f"{name}  {CANNOT_TELL.format(why=why)}")
