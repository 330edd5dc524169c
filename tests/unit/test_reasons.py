"""Why a value of a task file is refused: in plain words, for every field."""

from __future__ import annotations

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
    ("id", "x" * 201, "`id` should have at most 200 characters, not 201"),
    ("id", [1], "`id` should be text, not a list"),
    ("set", "exprt", "`set` should be expert, masked, auto or functions; did you mean `expert`?"),
    ("set", "Expert", "`set` should be expert, masked, auto or functions; did you mean `expert`?"),
    ("set", 5, "`set` should be expert, masked, auto or functions"),
    ("category", "A B", "`category` should have only small letters, digits and - _ and begin with a letter"),
    ("query", " ", "`query` should not be blank"),
    ("query", "", "`query` should not be empty"),
    ("query", 5, "`query` should be text, not a number: quote it"),
    ("query", True, "`query` should be text, not true: quote it"),
    ("query", None, "`query` should be text, not null"),
    ("repository", 5, "`repository` should be a mapping of fields, not a number"),
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
    (
        "repository",
        {"path": "..", "provide": "yes"},
        "`repository.provide` should be true or false, not text",
    ),
    ("answer_unknown", 1, "`answer_unknown` should be true or false, not a number"),
    ("tolerance", -1, "`tolerance` should be at least 0"),
    ("tolerance", "x", "`tolerance` should be a number, not text"),
    ("tolerance", float("inf"), "`tolerance` should be a finite number, not inf"),
    ("landmarks", "x", "`landmarks` should be a list, not text"),
    ("landmarks", ["("], "`landmarks[0]` is not a regular expression: missing ), "),
    ("landmarks", [5], "`landmarks[0]` should be text, not a number: quote it"),
    ("entrypoint", {"pth": "a"}, "unknown field `entrypoint.pth`; did you mean `path`?"),
    ("entrypoint", {"path": "/a"}, "`entrypoint.path` must be a relative path that stays in its folder"),
    ("entrypoint", {"path": "a", "min_seconds": -1}, "`entrypoint.min_seconds` should be at least 0"),
    ("pre_execute", [5], "`pre_execute[0]` should be a mapping of fields, not a number"),
    ("pre_execute", [{"files": True}], "`pre_execute[0]` needs exactly one of cell, edit"),
    ("pre_execute", [{"edit": {"path": "a"}}], "`pre_execute[0].edit.before` is missing"),
    ("solution", {"cells": []}, "`solution.cells` should not be empty"),
    ("solution", {"cells": [" "]}, "`solution.cells[0]` should not be blank"),
    (
        "solution",
        {"cells": ["1"], "answer_cell": 1.5},
        "`solution.answer_cell` should be a whole number, not 1.5",
    ),
    ("sandbox", {"cpus": 0}, "`sandbox.cpus` should be more than 0"),
    ("sandbox", {"memory": "much"}, "`sandbox.memory` is not a size: write it as 512m or 4g"),
    ("sandbox", {"network": "no"}, "`sandbox.network` should be true or false, not text"),
    ("sandbox", {"env": [5]}, "`sandbox.env` should be a mapping, not a list"),
    ("limits", {"steps": "many"}, "`limits.steps` should be a whole number, not text"),
    ("limits", None, "`limits` should be a mapping of fields, not null"),
    ("tags", [" "], "`tags[0]` should not be blank"),
    ("metadata", [1], "`metadata` should be a mapping, not a list"),
    ("subproblems", [{**PART, "mask": []}], "`subproblems[0].mask` should not be empty"),
    ("subproblems", [{**PART, "mask": [0]}], "`subproblems[0].mask[0]` should be a cell: its number, from 1"),
    ("subproblems", [{**PART, "category": "A"}], "`subproblems[0].category` should have only small letters"),
    ("subproblems", [{**PART, "pre_execute": [1.5]}], "`subproblems[0].pre_execute[0]` should be a mapping"),
    ("subproblems", [{**PART, "goal": []}], "`subproblems[0].goal` should be a cell"),
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
