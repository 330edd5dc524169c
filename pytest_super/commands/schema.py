"""`pytest-super schema`: print the JSON Schema of task files, by which editors complete and check them."""

import ast
import inspect
import json
from argparse import ArgumentParser, Namespace
from itertools import chain
from typing import Any

from pytest_super.tasks import grade, sandbox_spec, task

MODULES = (task, sandbox_spec, grade)
"""The modules of the models."""
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
    return schema


def field_docs() -> dict[tuple[str, str], str]:
    """The docstring below each field in the source, by model and field."""
    docs = {}
    for model in chain.from_iterable(ast.parse(inspect.getsource(module)).body for module in MODULES):
        if isinstance(model, ast.ClassDef):
            for field, after in zip(model.body, model.body[1:], strict=False):
                match field, after:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                        value=ast.Constant(value=str(text))
                    ):
                        docs[model.name, name.rstrip("_")] = inspect.cleandoc(text)
    return docs
