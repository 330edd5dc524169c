"""Names of targets: what they say before any file is read."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from pytest_super.errors import SuperError

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


def of_file(docstrings: Mapping[str, str], path: str) -> dict[str, str]:
    parts = ((target.partition(SEPARATOR), text) for target, text in docstrings.items())
    return {name: text for (file, _, name), text in parts if str(PurePosixPath(file)) == path}


def may_overlap(one: str, other: str) -> bool:
    """Whether one target's name says that it contains the other.

    `f` contains `f.g`, `f@part` and `f`; `f@part` contains `f@part.inner`. What a bare name contains only the
    file tells.
    """
    return contains(one, other) or contains(other, one)


def contains(outer: str, inner: str) -> bool:
    return inner == outer or inner.startswith((f"{outer}.", f"{outer}@"))
