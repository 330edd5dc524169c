"""A Python file as a syntax tree and as text that is written back byte for byte, and the functions in it."""

from __future__ import annotations

import ast
import codecs
import io
import re
import symtable
import sys
import threading
import tokenize
import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, TypeAlias

from pytest_super.errors import SuperError
from pytest_super.words import did_you_mean

# Python ends lines at these only; `str.splitlines` also does at form feeds and other separators.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
# What Python 3 says of code that only Python 2 accepts.
_PYTHON_2 = re.compile(
    r"Missing parentheses in call to '(print|exec)'|multiple exception types must be parenthesized"
    r"|leading zeros in decimal integer literals|invalid (decimal|octal) literal|<>"
)

# Python counts the depth of the trees that all threads make together, and then fails with a SystemError. The
# kernel of the next trial starts in a thread of its own, which masks functions.
_PARSING = threading.RLock()


class SourceError(SuperError):
    """A file cannot be masked, or a target is not in it."""


@dataclass(frozen=True)
class PythonSource:
    """A file that Python can parse. `name` is its path in messages."""

    name: str
    text: str
    encoding: str
    tree: ast.Module

    @classmethod
    def read(cls, name: str, data: bytes, encodings: Container[str] | None = None) -> PythonSource:
        """Raises SourceError, also if `encodings` lacks the codec of the encoding that the file declares."""
        with refusing(name):
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            if encodings is not None and codec(encoding) not in encodings:
                raise SourceError(
                    f"{name}: its encoding, {encoding}, is neither UTF-8 nor that of the original"
                )
            text = data.decode(encoding)
            restored = text.encode(encoding)
            # Not the bytes: Python looks for the encoding in other lines than `tokenize` does.
            tree = parsed(text, name)
        if restored != data:
            raise SourceError(f"{name}: its encoding, {encoding}, does not restore the same bytes")
        return cls(name, text, encoding, tree)

    @cached_property
    def lines(self) -> list[str]:
        """The lines with their ends."""
        return _LINE.findall(self.text)

    def encode(self, text: str) -> bytes:
        """Another text in the file's encoding."""
        return text.encode(self.encoding)

    def column(self, line: int, offset: int) -> int:
        """A column in characters. Syntax trees count lines from 1 and columns in bytes of UTF-8."""
        text = self.lines[line - 1]
        return offset if text.isascii() else len(text.encode()[:offset].decode())

    def line_end(self, line: int) -> str:
        """The characters that end a line; those of the first line for a last line without any."""
        for text in (self.lines[line - 1], self.lines[0]):
            if end := text[len(text.rstrip("\r\n")) :]:
                return end
        return "\n"


@contextmanager
def refusing(name: str) -> Iterator[None]:
    """Raises SourceError for what is wrong with a file that is parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except SyntaxError as error:
        raise SourceError(f"{name}{why_unreadable(error)}") from None
    # LookupError: a codec that is not one of texts, such as rot13.
    except (ValueError, LookupError) as error:
        raise SourceError(f"{name}: it cannot be parsed: {error}") from None
    except (RecursionError, MemoryError):
        raise SourceError(f"{name}: it cannot be parsed: it is nested too deeply or too large") from None


def parsed(code: str | bytes, name: str = "<unknown>") -> ast.Module:
    """`ast.parse`, in one thread at a time."""
    with _PARSING:
        return ast.parse(code, name)


def codec(encoding: str) -> str:
    """The name of the codec, which is one for all names of an encoding."""
    return codecs.lookup(encoding).name


def why_unreadable(error: SyntaxError) -> str:
    """`:LINE: message`, which says so if the file seems to be Python 2."""
    place = f":{error.lineno}" if error.lineno else ""
    if _PYTHON_2.search(error.msg):
        return f"{place}: it is written in Python 2, which cannot be masked ({error.msg})"
    return f"{place}: it cannot be parsed: {error.msg} (Python {sys.version_info[0]}.{sys.version_info[1]})"


# The functions in it, by their qualified names

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
OVERLOADS = {"overload", "_overload_method"}


@dataclass(frozen=True, eq=False)
class Definition:
    """A function of a file. `name` is qualified, and ends in `#k` if it is the k-th of that name."""

    name: str
    node: Function
    is_method: bool

    @property
    def plain_name(self) -> str:
        return self.name.partition("#")[0]

    @property
    def bare_name(self) -> str:
        return self.plain_name.rpartition(".")[2]


def definitions(source: PythonSource) -> list[Definition]:
    """All functions in the order of their lines, without the overloads of typing."""
    found = sorted(_functions(source.tree), key=lambda one: one.node.lineno)
    counts = Counter(one.name for one in found)
    seen: Counter[str] = Counter()
    for index, one in enumerate(found):
        seen[one.name] += 1
        if counts[one.name] > 1:
            found[index] = replace(one, name=f"{one.name}#{seen[one.name]}")
    return found


def _functions(tree: ast.Module) -> Iterator[Definition]:
    # A loop, because chains of `elif` can be deeper than Python's limit of recursion.
    waiting: list[tuple[ast.AST, str, bool]] = [(tree, "", False)]
    while waiting:
        parent, outer, is_class = waiting.pop()
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, Function | ast.ClassDef):
                name = f"{outer}{node.name}"
                waiting.append((node, f"{name}.", isinstance(node, ast.ClassDef)))
                if isinstance(node, Function) and not is_overload(node):
                    yield Definition(name, node, is_class)
            elif isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
                waiting.append((node, outer, is_class))


def is_overload(node: Function) -> bool:
    # The `overload(f)` of numba, which is called, decorates the only body.
    return any(last_name(one) in OVERLOADS for one in node.decorator_list if not isinstance(one, ast.Call))


def last_name(expression: ast.expr) -> str:
    """`c` of `a.b.c` and of `a.b.c(...)`."""
    if isinstance(expression, ast.Call):
        expression = expression.func
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else ""


def named(found: Sequence[Definition]) -> str:
    return ", ".join(f"{one.name} (line {one.node.lineno})" for one in found)


def find(source: PythonSource, name: str, among: Sequence[Definition]) -> Definition:
    """The function with a qualified name, or with a bare name that is unique. Raises SourceError."""
    found = (
        [one for one in among if one.name == name]
        or [one for one in among if one.plain_name == name]
        or [one for one in among if one.bare_name == name]
    )
    if len(found) == 1:
        return found[0]
    if found:
        raise SourceError(f"{source.name}: `{name}` is not unique; it can be {named(found)}")
    hint = did_you_mean(name, [one.name for one in among] + [one.bare_name for one in among], most=3)
    raise SourceError(f"{source.name}: there is no function `{name}` in it{hint}")


# Targets: a file and the name of a function in it

SEPARATOR = "::"


def by_file(targets: Iterable[str]) -> dict[str, list[str]]:
    """The names of functions by file. Raises SuperError for a target without a path inside the folder."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    for target in targets:
        path, separator, name = target.partition(SEPARATOR)
        if not (path and separator and name):
            raise SuperError(f"`{target}`: write a target as path/to/file.py{SEPARATOR}Class.method")
        place = PurePosixPath(path)
        if place.is_absolute() or ".." in place.parts:
            raise SuperError(f"`{target}`: the path must be relative to the folder and inside it")
        if place.suffix == ".ipynb":
            raise SuperError(f"`{target}`: a notebook cannot be masked: write its functions to a .py file")
        names[str(place)].append(name)
    return dict(names)


def may_overlap(one: str, other: str) -> bool:
    """Whether one target's name says that it contains the other.

    `f` contains `f.g`, `f@part` and `f`; `f@part` contains `f@part.inner`. What a bare name contains only the
    file tells.
    """
    return contains(one, other) or contains(other, one)


def contains(outer: str, inner: str) -> bool:
    return inner == outer or inner.startswith((f"{outer}.", f"{outer}@"))


# What is in its tree

Lists: TypeAlias = "dict[tuple[int, str], list[Any]]"
"""Lists of a tree that are expected to be others, by the node's `id` and the field's name."""


def are_equal(original: ast.AST, masked: ast.AST, lists: Mapping[tuple[int, str], list[Any]]) -> bool:
    """Whether two trees are equal but for positions, where `lists` replaces lists of the original."""
    waiting: list[tuple[Any, Any]] = [(original, masked)]
    while waiting:
        one, other = waiting.pop()
        if type(one) is not type(other):
            return False
        if isinstance(one, list):
            if len(one) != len(other):
                return False
            waiting += zip(one, other, strict=True)
        elif isinstance(one, ast.AST):
            for field in one._fields:
                value = getattr(one, field, None)
                if isinstance(value, list):
                    value = lists.get((id(one), field), value)
                waiting.append((value, getattr(other, field, None)))
        elif one != other:
            return False
    return True


def global_names(source: PythonSource, without: Collection[Function]) -> set[str]:
    """The names that a file uses globally outside of some functions' bodies. Raises SourceError."""
    try:
        module = symtable.symtable(source.text, source.name, "exec")
    except SyntaxError as error:
        raise SourceError(f"{source.name}{why_unreadable(error)}") from None
    used = {one.get_name() for one in module.get_symbols()}
    for table in inner_tables(module, {one.lineno for one in without}):
        used |= {one.get_name() for one in table.get_symbols() if one.is_global()}
    return used


def inner_tables(module: symtable.SymbolTable, without: Container[int]) -> Iterator[symtable.SymbolTable]:
    waiting = module.get_children()
    while waiting:
        table = waiting.pop()
        if table.get_type() != "function" or table.get_lineno() not in without:
            yield table
            waiting += table.get_children()
