"""The answers that trajectories are scored against: from task files, or from a file of answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pytest_super.errors import SuperError
from pytest_super.tasks.fields import has_leaf
from pytest_super.tasks.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Row = dict[str, Any]


def add_answers(tasks: dict[str, Task], path: Path) -> dict[str, Task]:
    """The tasks by id, with answers and entrypoints replaced by those of a file; the file can add tasks.

    The file is JSON, {task id: answer}, or JSON Lines with a `task_id` in each line; null means unknown.
    Raises SuperError with file and line, and with the column of a JSON error.
    """
    known = dict(tasks)
    seen: set[str] = set()
    for place, row in read_rows(path):
        try:
            task_id = row["task_id"]
            fields = dict(fields_of(row))
            if task_id in seen:
                raise ValueError(f"there are two answers for {task_id}")
            known[task_id] = with_fields(known.get(task_id), task_id, fields)
        except ValidationError as error:
            raise SuperError(f"{place}: {error.errors()[0]['msg']}") from None
        except (ValueError, TypeError, RecursionError) as error:
            raise SuperError(f"{place}: {error}") from None
        seen.add(task_id)
    return known


def read_rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Each row with its file and line. Raises SuperError."""
    text = read_text(path)
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(lines) > 1 and is_json(lines[0][1]):
        yield from (row_of(f"{path}:{number}", decoded(line, path, number)) for number, line in lines)
    elif lines:
        yield from rows_of_whole(path, decoded(text, path))


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SuperError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SuperError(f"{path} is not UTF-8") from None


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def decoded(text: str, path: Path, first_line: int = 1) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{path}:{first_line + error.lineno - 1}:{error.colno}"
        raise SuperError(f"{place}: not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise SuperError(f"{path}:{first_line}: not JSON that can be read: {error}") from None


def rows_of_whole(path: Path, value: Any) -> Iterator[tuple[str, Row]]:
    if not isinstance(value, dict):
        raise SuperError(f"{path}: it should be {{task id: answer}}, or JSON Lines")
    if "task_id" in value:
        yield f"{path}:1", value
    else:
        yield from (
            (str(path), {"task_id": name, "inferred_answer": answer}) for name, answer in value.items()
        )


def row_of(place: str, value: Any) -> tuple[str, Row]:
    if not isinstance(value, dict) or "task_id" not in value:
        raise SuperError(f"{place}: it should be an object with a `task_id`")
    return place, value


def fields_of(row: Row) -> Iterator[tuple[str, Any]]:
    answer = row.get("inferred_answer")
    if answer is None:
        answer = from_text(row.get("answer"))
    if answer is not None:
        if not has_leaf(answer):
            raise ValueError("the answer has no value to compare with")
        yield "answer", answer
    entrypoint = row.get("entrypoint") or row.get("inferred_entrypoint")
    if entrypoint is not None:
        yield "entrypoint", {"path": entrypoint}


def from_text(answer: Any) -> Any:
    """The value of an answer that is JSON text, as in SUPER's own files."""
    if not isinstance(answer, str):
        return answer
    try:
        return json.loads(answer)
    except ValueError:
        return answer


def with_fields(task: Task | None, task_id: str, fields: Row) -> Task:
    # A task needs a set, but no metric looks at it.
    made = Task.model_validate({"id": task_id, "set": "expert", "query": "unknown", **fields})
    if task is None:
        return made
    return task.model_copy(update={name: getattr(made, name) for name in fields})
