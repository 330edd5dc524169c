"""Finds the values of names and expressions in notebook cells from their text, without running them."""

from __future__ import annotations

import ast
import posixpath
import re

from pytest_super.metrics.script_runs.places import UNKNOWN
from pytest_super.metrics.script_runs.shell import commands

Value = str | list[str] | None

# IPython replaces both forms by the variable's value in shell lines and magics.
_VARIABLE = re.compile(r"\{(\w+)\}|\$(\w+)")


class KnownNames:
    """Names that cells bind: modules and functions by import, texts and lists of texts by assignment."""

    def __init__(self) -> None:
        self._imported: dict[str, str] = {}
        self._values: dict[str, Value] = {}

    def add_import(self, node: ast.Import | ast.ImportFrom) -> None:
        prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            self._imported[alias.asname or alias.name] = f"{prefix}{alias.name}"

    def assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self._values[target.id] = value_of(node.value, self)

    def value(self, name: str) -> Value:
        return self._values.get(name)

    def function(self, node: ast.expr) -> str:
        """The full name of a called function: `subprocess.run` for `sp.run`."""
        first, dot, rest = ast.unparse(node).partition(".")
        return f"{self._imported.get(first, first)}{dot}{rest}"

    def fill_in(self, line: str) -> str:
        return _VARIABLE.sub(self._filled_in, line)

    def _filled_in(self, match: re.Match[str]) -> str:
        value = self._values.get(match[1] or match[2])
        return value if isinstance(value, str) else match[0]


def value_of(node: ast.expr, names: KnownNames) -> Value:
    """A text, with `{?}` for each unknown part; a list of such texts; None if nothing is known."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return names.value(name)
        case ast.JoinedStr(values=parts):
            return "".join(_text(part, names) for part in parts)
        case ast.FormattedValue(value=inner):
            return value_of(inner, names)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _sum(value_of(left, names), value_of(right, names))
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_text(item, names) for item in items]
        case ast.Attribute() if names.function(node) == "sys.executable":
            return "python"
        case ast.Call():
            return _value_of_call(node, names)
    return None


def _value_of_call(node: ast.Call, names: KnownNames) -> Value:
    texts = [_text(argument, names) for argument in node.args]
    if not texts:
        return _split(node.func, names)
    match names.function(node.func):
        case "os.path.join":
            return posixpath.join(*texts)
        case "str" | "pathlib.Path" | "os.path.abspath" | "os.path.expanduser":
            return texts[0]
        case "shlex.split":
            return list(next(commands(texts[0])).words)
    return None


def _split(function: ast.expr, names: KnownNames) -> Value:
    """`"python train.py".split()`"""
    if isinstance(function, ast.Attribute) and function.attr == "split":
        text = value_of(function.value, names)
        return text.split() if isinstance(text, str) else None
    return None


def _text(node: ast.expr, names: KnownNames) -> str:
    value = value_of(node, names)
    return value if isinstance(value, str) else UNKNOWN


def _sum(left: Value, right: Value) -> Value:
    if isinstance(left, list):
        # The program is at the beginning: an unknown end hides nothing that matters, an unknown beginning
        # everything.
        return left + right if isinstance(right, list) else left
    if isinstance(right, list):
        return None
    return (UNKNOWN if left is None else left) + (UNKNOWN if right is None else right)
