"""Values read from stored steps: why a cell failed, what was submitted, what was edited."""

import ast
import json
from collections.abc import Iterable
from typing import Any

from pytest_super.json_values import loaded
from pytest_super.store.trajectory import Step
from pytest_super.words import shortened

# Characters of a cell's error or output that a message shows.
MAX_ERROR = 300
# Python's parser takes a thousand times the memory of a text.
LONGEST_LITERAL = 100_000


def error_of(step: Step) -> str:
    """The type and last line of the cell's exception, or else the last line of its observation."""
    errors = [output for output in step.outputs if output["output_type"] == "error"]
    kind = f"{errors[-1]['ename']}: " if errors else ""
    text = errors[-1]["evalue"] if errors else step.observation
    lines = text.strip().splitlines() or [str(step.outcome)]
    return shortened(f"{kind}{lines[-1].strip()}", MAX_ERROR)


def submitted_text(steps: Iterable[Step]) -> str | None:
    """What was submitted last, as text; None without a submission."""
    submitted = [step.action.content for step in steps if step.action.type == "submit"]
    return submitted[-1] if submitted else None


def submission_of(content: str) -> Any:
    """The submitted value. Our trajectories store it as JSON, published ones as a Python literal.

    Content that is neither is the value itself, as text. So is a literal that JSON cannot express: written as
    JSON, `{1: 2}` would become another value.
    """
    text = content.removeprefix("submit ")
    try:
        value = parse_value(text)
    except ValueError:
        return text
    return value if is_json(value) else text


def is_json(value: Any) -> bool:
    """Whether JSON has the value as it is. Not recursive, because values can be nested deeply."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict) and all(isinstance(key, str) for key in one):
            todo.extend(one.values())
        elif isinstance(one, list):
            todo.extend(one)
        elif not isinstance(one, str | int | float | None):
            return False
    return True


def edit_of(content: str) -> dict[str, str] | None:
    """The fields of an edit that is stored as `Trial.edit` stores it; None for another form."""
    edit = json_object(content)
    return edit if edit is not None and edit.keys() == {"path", "before", "after"} else None


def json_object(text: str) -> dict[str, Any] | None:
    """Read a JSON object; None for any other text."""
    value = loaded(text)
    return value if isinstance(value, dict) else None


def parse_value(text: str) -> Any:
    """The value of JSON or of a Python literal. Raises ValueError."""
    for parse in (json.loads, parse_literal):
        try:
            return parse(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    raise ValueError(f"neither JSON nor a Python literal: {shortened(text, MAX_ERROR)!r}")


def parse_literal(text: str) -> Any:
    """Like ast.literal_eval, but accepts nan and inf, as Python writes these numbers, and no longer text."""
    if len(text) > LONGEST_LITERAL:
        raise ValueError(f"longer than {LONGEST_LITERAL:,} characters")
    return ast.literal_eval(NamedNumbers().visit(ast.parse(text.strip(), mode="eval")))


class NamedNumbers(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(float(node.id)) if node.id in ("nan", "inf") else node
