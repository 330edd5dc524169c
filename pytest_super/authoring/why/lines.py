"""What was found about unsolved trials, as lines of text."""

from collections.abc import Iterator

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
from pytest_super.store.trajectory import Step
from pytest_super.words import named, one_line, shortened

LONGEST_ACTION = 100
MOST_FILES = 3

LOST = "lost at step {step} of {steps}: gold finishes{cells} from the state after {before}, not from its own"
CANNOT_TELL = "cannot tell: {why}"


def answer_lines(searched: Searched) -> Iterator[str]:
    result, answer = searched.trial.result, searched.answer
    yield one_line(f"{result.name}  {words_of(searched)}")
    if step := lost_step(searched):
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


def lost_step(searched: Searched) -> Step | None:
    """The step that lost the task, if one did."""
    trial, answer = searched.trial, searched.answer
    if isinstance(answer, Lost) and isinstance(trial, LostTrial):
        return trial.steps[answer.step - 1]
    return None


def words_of(searched: Searched) -> str:
    trial, answer = searched.trial, searched.answer
    result, bodies = trial.result, len(trial.task.functions)
    match answer:
        case Lost():
            assert isinstance(trial, LostTrial)
            numbers = [step.number for step in trial.steps]
            number, cells = numbers[answer.step - 1], cells_of(answer.cell)
            before = f"step {numbers[answer.step - 2]}" if answer.step > 1 else "no step"
            return LOST.format(step=number, steps=numbers[-1], cells=cells, before=before)
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
