"""Why a value of a task file is refused: in plain words, for every field."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_super.errors import TaskFileError
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.reasons import PATTERNS
from pytest_super.tasks.task import Task

TASK = {"id": "a", "set": "expert", "query": "q", "answer": 1, "solution": {"cells": ["1", "2"]}}
PART = {"id": "b", "category": "data", "query": "q", "mask": [1]}

# What a value is called, by pydantic or by Python.
JARGON = re.compile(
    r"Input|String |List |valid (string|list|dict|bool|int|num)|dictionary|instance of|boolean|validation"
    r"|match pattern|Field|required|permitted|Value error|\^\[|\\S|\]\*|None|\bstr\b|\bint\b"
)

# A wrong value of a field, and the words that say what is wrong.
WRONG: list[tuple[str, Any, str]] = [
    ("id", "a/b", "`id` should have only letters, digits and . _ , - and begin with a letter or a digit"),
    ("id", "", "`id` should not be empty"),
    ("set", "exprt", "`set` should be expert, masked, auto or functions; did you mean `expert`?"),
    ("category", "A B", "`category` should have only small letters, digits and - _ and begin with a letter"),
    ("query", " ", "`query` should not be blank"),
    ("query", "", "`query` should not be empty"),
    ("query", True, "`query` should be text, not true: quote it"),
    ("repository", {"git": "u"}, "`repository` with git needs commit"),
    (
        "repository",
        {"git": "u", "commit": "ab"},
        "`repository.commit` should be a full commit hash: 40 digits",
    ),
    (
        "repository",
        {"pypi": "p", "version": "1", "sha256": "xy"},
        "`repository.sha256` should be a SHA-256 digest: 64 digits",
    ),
    ("answer_unknown", 1, "`answer_unknown` should be true or false, not a number"),
    ("tolerance", -1, "`tolerance` should be at least 0"),
    ("landmarks", "x", "`landmarks` should be a list, not text"),
    ("landmarks", ["("], "`landmarks[0]` is not a regular expression: missing ), "),
    ("entrypoint", {"pth": "a"}, "unknown field `entrypoint.pth`; did you mean `path`?"),
    ("pre_execute", [5], "`pre_execute[0]` should be a mapping of fields, not a number"),
    ("pre_execute", [{"edit": {"path": "a"}}], "`pre_execute[0].edit.before` is missing"),
    ("solution", {"cells": []}, "`solution.cells` should not be empty"),
    (
        "solution",
        {"cells": ["1"], "answer_cell": 1.5},
        "`solution.answer_cell` should be a whole number, not 1.5",
    ),
    ("sandbox", {"cpus": 0}, "`sandbox.cpus` should be more than 0"),
    ("sandbox", {"memory": "much"}, "`sandbox.memory` is not a size: write it as 512m or 4g"),
    ("sandbox", {"env": [5]}, "`sandbox.env` should be a mapping, not a list"),
    ("limits", {"steps": "many"}, "`limits.steps` should be a whole number, not text"),
    ("subproblems", [{**PART, "mask": []}], "`subproblems[0].mask` should not be empty"),
    ("subproblems", [{**PART, "pre_execute": [1.5]}], "`subproblems[0].pre_execute[0]` should be a mapping"),
]


@pytest.mark.parametrize(("field", "value", "message"), WRONG)
def test_a_wrong_value_is_told_in_plain_words(tmp_path: Path, field: str, value: Any, message: str) -> None:
    text = json.dumps({**TASK, field: value}).replace("Infinity", ".inf")
    with pytest.raises(TaskFileError) as caught:
        load_tasks(tmp_path / "t.task.yaml", shown="t", text=text)
    words = [line.split(": ", 1)[1] for line in str(caught.value).splitlines()]
    assert any(line.startswith(message) for line in words), words
    assert not [line for line in words if JARGON.search(line)]


def patterns(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from [value for name, value in schema.items() if name == "pattern" and isinstance(value, str)]
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from patterns(part)


def test_each_pattern_of_a_field_has_words_that_replace_it() -> None:
    assert set(patterns(Task.model_json_schema())) == PATTERNS.keys()
