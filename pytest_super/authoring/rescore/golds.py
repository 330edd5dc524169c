"""The answers that trajectories are scored against: from task files, or from a file of answers."""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_super.authoring.rows import Row, read_rows
from pytest_super.errors import SuperError
from pytest_super.tasks.reasons import reason
from pytest_super.tasks.task import Task


def add_answers(tasks: dict[str, Task], path: Path) -> dict[str, Task]:
    """The tasks by id, with the answers and entrypoints of a JSON Lines file. Raises SuperError."""
    known, seen = dict(tasks), set[str]()
    for row in read_rows(path, str(path)):
        try:
            fields = fields_of(row)
            # A task needs a set and a query, but no metric looks at them.
            made = Task.model_validate({"set": "expert", "query": "unknown", **fields})
            if made.id in seen:
                raise ValueError(f"there are two answers for {made.id}")
        except KeyError:
            raise SuperError(f"{path}:{row.number}: it has no `task_id`") from None
        except ValidationError as error:
            detail = error.errors(include_url=False)[0]
            raise SuperError(f"{path}:{row.number}: `{detail['loc'][0]}` {reason(detail)}") from None
        except (ValueError, RecursionError) as error:
            raise SuperError(f"{path}:{row.number}: {error}") from None
        seen.add(made.id)
        update = {name: getattr(made, name) for name in fields}
        known[made.id] = known[made.id].model_copy(update=update) if made.id in known else made
    return known


def fields_of(row: Row) -> dict[str, Any]:
    """The fields of a task that the row states. Raises KeyError without its id."""
    fields = {"id": row.fields["task_id"]}
    answer = row.fields.get("inferred_answer")
    if answer is None:
        answer = from_text(row.fields.get("answer"))
    if answer is not None:
        fields["answer"] = answer
    if entrypoint := row.fields.get("entrypoint") or row.fields.get("inferred_entrypoint"):
        fields["entrypoint"] = {"path": entrypoint}
    return fields


def from_text(answer: Any) -> Any:
    """The value of an answer that is JSON text, as in SUPER's own files."""
    if not isinstance(answer, str):
        return answer
    try:
        return json.loads(answer)
    except ValueError:
        return answer
