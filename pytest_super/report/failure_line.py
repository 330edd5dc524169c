"""The red line of a trial that is not solved: its figures, why it ended, and what was wrong."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

import pytest

from pytest_super.metrics.script_executed import SCRIPT_EXECUTED
from pytest_super.metrics.submitted import SUBMITTED
from pytest_super.metrics.suspect import SUSPECT
from pytest_super.store.results import RUNNING, TrialResult
from pytest_super.store.trajectory import MANY_REPEATS
from pytest_super.words import exit_code, exit_words, named, printable_line, shortened

# The lines that Python writes between the tracebacks of chained exceptions.
CHAINED = re.compile(
    r"\n\n(?:During handling of the above exception, another exception occurred"
    r"|The above exception was the direct cause of the following exception):\n\n"
)
MOST_LANDMARKS, LANDMARK_LIMIT = 3, 40
MOST_VALUES = 3
# Goes without saying.
NOT_SUSPECT = (SUSPECT.name, SUSPECT.best)
FRAME = re.compile(r' *File "(.+)", line (\d+), in (.+)')
MOST_FRAMES = 3
# Frames of this package and of libraries are not the agent's own.
OTHERS = (
    "<",
    str(Path(__file__).parents[1]),
    str(Path(os.__file__).parent),
    str(Path(pytest.__file__).parents[1]),
)
GROUP = "+ Exception Group Traceback"


def raised(traceback: str) -> str:
    """The exception at the end of a traceback: its type without the module, and its message's first line.

    Behind them come the last frames of the agent's own code.
    """
    lines = CHAINED.split(traceback.strip())[-1].strip("\n").split("\n")
    if lines[0].lstrip().startswith(GROUP):
        # An exception group is printed with a margin.
        lines = [line[len("  | ") :] for line in lines]
    # The message can have many lines and can contain a traceback.
    places = [place for place, line in enumerate(lines) if place and line and not line[0].isspace()]
    end = places[0] if places else -1
    kind, colon, message = lines[end].partition(":")
    return "; ".join([f"{kind.rpartition('.')[2]}{colon}{message}", *own_frames(lines[:end])])


def own_frames(lines: Sequence[str]) -> list[str]:
    """The last frames of the agent's own code in a traceback."""
    frames = [found.groups() for found in map(FRAME.fullmatch, lines) if found]
    own = [
        f"{PurePath(path).name}:{line} in {name}"
        for path, line, name in frames
        if not path.startswith(OTHERS)
    ]
    return own[-MOST_FRAMES:]


def failure_line(result: TrialResult) -> str:
    """The figures of an unsolved trial, why it ended, and whether it was stuck, on one line."""
    # The stop reason says whether there was a submission.
    figures = score_of({name: value for name, value in result.metrics.items() if name != SUBMITTED.name})
    is_stuck = result.repeats >= MANY_REPEATS
    repeated = f"repeated one action with one observation {result.repeats} times" if is_stuck else ""
    # With a cause of what is submitted, it goes without saying that it was.
    said = result.cause and result.stop_reason == "submitted"
    why = ": ".join(filter(None, (result.cause, "" if said else stop_of(result))))
    return "; ".join(filter(None, (figures, why, repeated)))


def score_of(metrics: dict[str, float | None]) -> str:
    known = ((name, value) for name, value in metrics.items() if value is not None)
    return ", ".join(f"{name} {value:.3g}" for name, value in known if (name, value) != NOT_SUSPECT)


def stop_of(result: TrialResult) -> str:
    return STOPS.get(result.stop_reason, result.stop_reason)


def failure_line_with_error(result: TrialResult) -> str:
    """The same, with what the agent raised."""
    error = f" ({raised(result.agent_error)})" if result.agent_error else ""
    return printable_line(f"{failure_line(result)}{error}")


def describe(result: TrialResult) -> str:
    """The same, with the values that are wrong, the landmarks that were missed, and the entrypoint's run."""
    parts = [
        failure_line_with_error(result),
        result.difference,
        first_ones(wrong_lines(result.graded)),
        f"not graded: {named(result.left_out, MOST_VALUES)}" if result.left_out else "",
        missed_landmarks(result),
        script_state(result),
    ]
    return printable_line("; ".join(filter(None, parts)))


def missed_landmarks(result: TrialResult) -> str:
    missed = [found["pattern"] for found in result.landmarks_found if found["step"] is None]
    texts = [f"`{shortened(text, LANDMARK_LIMIT)}`" for text in missed]
    return f"missed landmark{'s' * (len(missed) > 1)} {named(texts, MOST_LANDMARKS)}" if missed else ""


def first_ones(lines: Sequence[str]) -> str:
    more = [f"and {len(lines) - MOST_VALUES} more"] if len(lines) > MOST_VALUES else []
    return "; ".join([*lines[:MOST_VALUES], *more])


def wrong_lines(values: Sequence[dict[str, Any]]) -> list[str]:
    """How commands ended, where only that explains values of a grader, and the values that are not right.

    Values that are missing because their command failed are left out.
    """
    failed = {value.get("command") for value in values if value.get("exit_code")}
    wrong = [
        value
        for value in values
        if value["score"] < 1 and not (value["why"] and value.get("command") in failed)
    ]
    lines = [graded_line(value) for value in wrong]
    if len(whys := {value["why"] for value in wrong}) == 1 and all(whys):
        commands = [*dict.fromkeys(value["command"] for value in wrong if value.get("command"))]
        lines = [": ".join(filter(None, [named(commands, MOST_VALUES), *whys]))]
    # The ends first, because a terminal shows only the beginning of a long line.
    return [*end_lines(values), *lines]


def end_lines(values: Iterable[dict[str, Any]]) -> list[str]:
    """Tell the end of each command of a grader with values that only its end explains."""
    return [end_line(value) for value in values if value.get("printed") or value.get("exit_code") is not None]


def end_line(value: dict[str, Any]) -> str:
    code = value.get("exit_code")
    ended = "" if code is None else f" ended with {exit_words(code)} and"
    said = f"printed: {value['printed']}" if value["printed"] else "printed nothing"
    return f"{value.get('command') or 'the grader'}{ended} {said}"


def graded_line(value: dict[str, Any]) -> str:
    """A value of a grader next to what it should be."""
    name = ": ".join(filter(None, (value.get("command"), value["name"])))
    if value["why"]:
        return f"{name}: {value['why']}"
    wanted = f", not {value['expected']}" if value["expected"] and value["score"] < 1 else ""
    return f"{name} is {value['found']}{wanted}"


def script_state(result: TrialResult) -> str:
    """What was seen of the task's entrypoint, if it does not count as executed."""
    process = result.entrypoint_process
    if result.metrics.get(SCRIPT_EXECUTED.name) != 0.0:
        return ""
    if process is None:
        return "no run of the script was seen"
    changed = ", changed," if process["changed"] else ""
    ran = f"{PurePosixPath(process['script']).name}{changed} ran as {process['script']}"
    if process["seconds"] is None:
        return f"{ran} and had not ended"
    needed = process.get("min_seconds")
    if needed and process["seconds"] < needed:
        return f"{ran} for {process['seconds']:.1f} s, and needs {needed:g} s"
    status = process["status"]
    ended = "status unknown" if status is None else exit_words(exit_code(status))
    return f"{ran} for {process['seconds']:.1f} s, {ended}"


STOPS = {
    RUNNING: "",
    "submitted": "submitted",
    "returned": "the agent ended without a submission",
    "agent_error": "the agent raised",
    "sandbox_lost": "the sandbox was lost",
    "timeout": "stopped by pytest-timeout",
    "context": "the prompt was longer than the model's window",
} | {name: f"the {name} budget was spent" for name in ("compute", "wall", "tokens", "cost", "steps")}
