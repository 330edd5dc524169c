"""The fields of a result as lines for people, by their declarations, and what makes its figures doubtful."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.metrics.graded import GRADED
from pytest_super.metrics.self_report import SELF_REPORT
from pytest_super.report.text import graded_line, grader_output, raised, score_of, script_state, stop_of
from pytest_super.tasks.grade import SAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_super.store.result_fields import Field
    from pytest_super.store.results import TrialResult

Fact = tuple[str, str]

GRADED_BESIDE = "graded in the agent's own sandbox, which can deceive the grader"
GRADED_OTHERWISE = "graded otherwise with all that the agent changed (whole_file)"


def facts_of(result: TrialResult, fields: Iterable[Field], most: int | None = None) -> Iterator[Fact]:
    """A label and a text for each line. A field has at most `most` lines."""
    for field in fields:
        absent = [] if field.absent is None else [field.absent]
        yield from ((field.label, text) for text in texts_of(field, result)[:most] or absent)


def texts_of(field: Field, result: TrialResult) -> list[str]:
    """The value of a field as lines; none if the field has its default."""
    value = getattr(result, field.name)
    if field.name in OWN_WORDS:
        return [text for text in OWN_WORDS[field.name](result) if text]
    return [] if value == field.default else [text_of(value, field)]


def text_of(value: Any, field: Field) -> str:
    """A value on one line, with its unit."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {one}" for name, one in single_values(value))
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return field.unit.format.format(value) if field.unit else str(value)


def single_values(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((name, one) for name, one in value.items() if not isinstance(one, list | dict))


# Of fields whose values are objects, or are words of the program.
OWN_WORDS: dict[str, Callable[[TrialResult], Iterable[str]]] = {
    "stop_reason": lambda result: [stop_of(result)],
    "agent_error": lambda result: [raised(result.agent_error or "")],
    "metrics": lambda result: [score_of(result.metrics)],
    "landmarks_found": lambda result: map(landmark_line, result.landmarks_found),
    "entrypoint_process": lambda result: [script_state(result) or process_line(result)],
    "graded": lambda result: [
        *map(graded_line, result.graded),
        *(f"the grader printed: {text}" for text in grader_output(result)),
    ],
    "whole_file": lambda result: map(graded_line, result.whole_file or ()),
    "tokens": lambda result: [
        f"{result.prompt_tokens:,} of prompts, {result.completion_tokens:,} of answers"
    ],
}


def landmark_line(found: dict[str, Any]) -> str:
    step = found["step"]
    return f"{'missed' if step is None else f'step {step}'}: {found['pattern']}"


def process_line(result: TrialResult) -> str:
    process = result.entrypoint_process
    if process is None:
        return ""
    return f"{process.get('script')}: {process.get('arguments')}, {process.get('seconds')} s"


def doubts_of(result: TrialResult) -> Iterator[str]:
    """What could make a figure say more than the agent did."""
    echoes = sum(bool(found["is_echo"]) for found in result.landmarks_found)
    if echoes:
        yield f"echo: {echoes} of the landmarks are also in the source of the cell that hit them"
    if result.entrypoint_process and result.entrypoint_process.get("changed"):
        yield "changed script: what ran differs from what the repository and the edits made of it"
    if result.graded_in == SAME:
        yield GRADED_BESIDE
    if result.whole_file_differs:
        yield GRADED_OTHERWISE
    said, graded = result.metrics.get(SELF_REPORT.name), result.metrics.get(GRADED.name)
    if said is not None and graded is not None and said > graded:
        yield f"the agent's own report ({said:.3g}) is better than what its code yields ({graded:.3g})"
    if result.changed_elsewhere:
        yield f"changed but not collected: {', '.join(result.changed_elsewhere)}"
    if result.dropped:
        yield f"{result.dropped} frames or messages of the sandbox did not fit and were dropped"
