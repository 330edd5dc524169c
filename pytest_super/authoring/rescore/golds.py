"""The answers that trajectories are scored against: from task files, or from a file of answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_super.authoring.rows import content_of, read_rows
from pytest_super.errors import SuperError
from pytest_super.tasks.reasons import reason
from pytest_super.tasks.task import Task

Fields = dict[str, Any]


def add_answers(tasks: dict[str, Task], path: Path) -> dict[str, Task]:
    """The tasks by id, with answers and entrypoints replaced by those of a file; the file can add tasks.

    The file is JSON, {task id: answer}, or JSON Lines with a `task_id` in each line; null means unknown.
    Raises SuperError with file and line.
    """
    known = dict(tasks)
    seen: set[str] = set()
    for place, row in rows_of(path):
        try:
            fields = dict(fields_of(row))
            # A task needs a set and a query, but no metric looks at them.
            made = Task.model_validate({"id": row["task_id"], "set": "expert", "query": "unknown", **fields})
            if made.id in seen:
                raise ValueError(f"there are two answers for {made.id}")
        except KeyError:
            raise SuperError(f"{place}: it has no `task_id`") from None
        except ValidationError as error:
            raise SuperError(f"{place}: {first_problem(error)}") from None
        except (ValueError, RecursionError) as error:
            raise SuperError(f"{place}: {error}") from None
        seen.add(made.id)
        task = known.get(made.id)
        known[made.id] = (
            task.model_copy(update={name: getattr(made, name) for name in fields}) if task else made
        )
    return known


def rows_of(path: Path) -> Iterator[tuple[str, Fields]]:
    """Each row, with its place in messages. Raises SuperError."""
    try:
        whole = json.loads(content_of(path, str(path)))
    except json.JSONDecodeError as error:
        # In JSON Lines more follows the first value.
        if error.msg != "Extra data":
            raise SuperError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
        whole = None
    except (ValueError, RecursionError) as error:
        raise SuperError(f"{path}: not JSON that can be read: {error}") from None
    # A file of JSON Lines with a single line is an object, too.
    if isinstance(whole, dict) and "task_id" not in whole:
        yield from ((str(path), {"task_id": name, "inferred_answer": value}) for name, value in whole.items())
    else:
        yield from ((f"{path}:{row.number}", row.fields) for row in read_rows(path, str(path)))


def fields_of(row: Fields) -> Iterator[tuple[str, Any]]:
    answer = row.get("inferred_answer")
    if answer is None:
        answer = from_text(row.get("answer"))
    if answer is not None:
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


def first_problem(error: ValidationError) -> str:
    detail = error.errors(include_url=False)[0]
    return f"`{detail['loc'][0]}` {reason(detail)}"
