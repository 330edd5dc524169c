"""`pytest-super schema`: print the JSON Schema of task files, by which editors complete and check them."""

from __future__ import annotations

import ast
import inspect
import json
from typing import TYPE_CHECKING, Any

from pytest_super.tasks import task

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

HELP = "print the JSON Schema of task files"


def add_arguments(parser: ArgumentParser) -> None:
    """This command has no arguments."""


def run(_arguments: Namespace) -> int:
    """Print the content of `task.schema.json`, which ships with the package."""
    print(json.dumps(task_schema(), indent=2))
    return 0


def task_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of one task, described by the docstrings of the models."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **task.Task.model_json_schema()}
    docs = field_docs()
    for model, definition in [("Task", schema), *schema["$defs"].items()]:
        for name, field in definition["properties"].items():
            if text := docs.get((model, name)):
                field["description"] = text
    allow_plain_cells(schema)
    return schema


def allow_plain_cells(schema: dict[str, Any]) -> None:
    """Allow plain text for a pre-executed cell, which pydantic's schema does not know."""
    items = schema["properties"]["pre_execute"]["items"]
    schema["properties"]["pre_execute"]["items"] = {"anyOf": [{"type": "string"}, items]}


def field_docs() -> dict[tuple[str, str], str]:
    """The docstring below each field in the source, by model and field."""
    docs = {}
    for model in ast.parse(inspect.getsource(task)).body:
        if isinstance(model, ast.ClassDef):
            for field, after in zip(model.body, model.body[1:], strict=False):
                text = docstring_of(after)
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and text:
                    docs[model.name, field.target.id] = text
    return docs


def docstring_of(node: ast.stmt) -> str | None:
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ):
        return inspect.cleandoc(node.value.value)
    return None
