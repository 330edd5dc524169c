"""Finds what gives masked bodies away in the folder that an agent gets.

Copies of the code, old versions of files, and lines of the bodies in other texts: each of them was found in
published tasks with masked functions.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from pytest_super.functions.source import PythonSource, SourceError, definitions
from pytest_super.functions.spans import body_text
from pytest_super.words import named

# Two bodies are alike from this portion of equal tokens on. Shorter ones are alike by chance.
ALIKE, FEWEST_TOKENS = 0.75, 20
# A text is named if it has so many of a body's lines, and this portion of them. Short lines do not count.
FEWEST_LINES, PORTION, SHORTEST_LINE = 2, 0.25, 20
MOST_NUMBERS = 10
LARGEST_TEXT = 4 * 2**20
OLD_FOLDERS = frozenset({".git", ".hg", ".svn", "__pycache__", ".ipynb_checkpoints"})
OLD = "it can contain the original code: a history, a copy, or a compiled form"
# A backup of a file of another kind, such as `pyproject.toml.orig`, has no code.
_BACKUP = re.compile(
    r"(?i)([^.]*|.*\.(py\w?|ipynb))(\.(orig|bak|old|rej)|~)|.*(\.(py[co]|patch|diff)| copy.*)"
)
_TOKEN = re.compile(r"\w+|[^\w\s]")
_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)


class Leak(NamedTuple):
    """One place that gives the body of a target away."""

    kind: str
    """`copy`, `lines` or `file`."""
    path: str
    target: str
    """The target, or "" for a file that can contain any of them."""
    detail: str


class Gold(NamedTuple):
    """The original body of a target."""

    target: str
    tokens: list[str]
    lines: frozenset[str]


def is_old_file(name: str) -> bool:
    """Whether a file with this name can contain an old version of code."""
    return _BACKUP.fullmatch(name) is not None


def gold_of(target: str, body: str) -> Gold:
    return Gold(target, tokens_of(body), frozenset(long_lines(body)))


def tokens_of(code: str) -> list[str]:
    return _TOKEN.findall(_COMMENT.sub("", code))


def long_lines(text: str) -> Iterator[str]:
    """Lines without the marks that a comment or a quotation puts before them, and with single blanks."""
    yield from (line for _, line in numbered_lines(text))


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        plain = " ".join(line.strip().lstrip("#>*").split())
        if len(plain) >= SHORTEST_LINE:
            yield number, plain


def find_leaks(folder: Path, gold: Iterable[Gold]) -> Iterator[Leak]:
    """What is left in a masked folder, file by file."""
    known = list(gold)
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        parts = PurePosixPath(name).parts
        if not OLD_FOLDERS.isdisjoint(parts[:-1]):
            continue
        if path.is_dir() and path.name in OLD_FOLDERS:
            yield Leak("file", name, "", OLD)
        elif path.is_file():
            yield from leaks_of_file(name, path, known)


def leaks_of_file(name: str, path: Path, gold: list[Gold]) -> Iterator[Leak]:
    if is_old_file(path.name):
        yield Leak("file", name, "", OLD)
    if path.stat().st_size > LARGEST_TEXT:
        return
    data = path.read_bytes()
    found = list(copies(name, data, gold)) if path.suffix == ".py" else []
    yield from found
    text = data.decode("utf-8", "replace")
    is_notebook = path.suffix == ".ipynb"
    lines = list(numbered_lines(notebook_text(text) if is_notebook else text))
    copied = {leak.target for leak in found}
    for one in gold:
        common = {line for _, line in lines} & one.lines
        if one.target not in copied and len(common) >= max(FEWEST_LINES, PORTION * len(one.lines)):
            numbers = [str(number) for number, line in lines if line in common]
            # The lines of a notebook's cells are not those of its file.
            where = "" if is_notebook else f": lines {named(numbers, MOST_NUMBERS)}"
            detail = f"it has {len(common)} of the {len(one.lines)} long lines{where}"
            yield Leak("lines", name, one.target, detail)


def notebook_text(text: str) -> str:
    """The lines of a notebook's cells and outputs, or the text itself if it is not a notebook."""
    try:
        return "\n".join(texts_in(json.loads(text)))
    except (ValueError, RecursionError):
        return text


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts_in(inner)


def copies(name: str, data: bytes, gold: list[Gold]) -> Iterator[Leak]:
    """Functions of a file that are like a target's original body."""
    try:
        source = PythonSource.read(name, data)
    except SourceError:
        return
    for definition in definitions(source):
        tokens = tokens_of(body_text(source, definition.node))
        for one in gold:
            if (portion := similarity(one.tokens, tokens)) >= ALIKE:
                detail = f"`{definition.name}` has {portion:.0%} of the tokens"
                yield Leak("copy", name, one.target, detail)


def similarity(one: list[str], other: list[str]) -> float:
    """The portion of equal tokens in the same order, from 0 to 1; 0 for short bodies."""
    if min(len(one), len(other)) < FEWEST_TOKENS:
        return 0.0
    total = len(one) + len(other)
    # Two upper bounds, by length and by content, because the comparison itself is slow.
    if 2 * min(len(one), len(other)) / total < ALIKE:
        return 0.0
    if 2 * (Counter(one) & Counter(other)).total() / total < ALIKE:
        return 0.0
    return SequenceMatcher(None, one, other, autojunk=False).ratio()
