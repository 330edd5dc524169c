"""The fields of a result as lines for people, by their declarations."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pytest_super.report.failure_line import end_lines, graded_line, raised, score_of, script_state, stop_of
from pytest_super.store.field_declarations import Field
from pytest_super.store.results import TrialResult

Fact = tuple[str, str]


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
    "graded": lambda result: [*map(graded_line, result.graded), *end_lines(result.graded)],
    "whole_file": lambda result: map(graded_line, result.whole_file or ()),
    "integrity": lambda result: sign_lines(result),
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


def sign_lines(result: TrialResult) -> Iterator[str]:
    return map(sign_line, result.integrity or ())


def sign_line(sign: dict[str, Any]) -> str:
    at = "" if sign["step"] is None else f", step {sign['step']}"
    return f"{sign['kind']}{at}: {sign['evidence']}"
