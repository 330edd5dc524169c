"""Paths as the text of cells names them, compared as far as they are known."""

import posixpath
import re
from collections.abc import Iterable
from itertools import takewhile
from operator import eq

# A part that only the running shell or interpreter knew.
UNKNOWN = "{?}"
_UNKNOWN_PART = re.compile(r".*[${*?`\[].*|~.*|\.\.", re.DOTALL)


def join(folder: str, path: str) -> str:
    """`path` as seen from `folder`; "" is the sandbox's working directory."""
    # Where these lead does not depend on the folder.
    if path.startswith(("~", "$", "{")):
        return path
    joined = posixpath.normpath(posixpath.join(folder, path))
    return "" if joined == "." else joined


def may_be(path: str, wanted: str) -> bool:
    """Whether `path` can be the file `wanted` in some folder, as far as its last parts are known."""
    # The empty part in front keeps `train.py` from being `src/train.py`.
    parts = ["", *filter(None, path.split("/"))]
    known = list(takewhile(lambda part: not _UNKNOWN_PART.fullmatch(part), reversed(parts)))
    return bool(known) and all(map(eq, known, reversed(wanted.split("/"))))


def inside(path: str, folder: str) -> str | None:
    """`path` relative to `folder`; None if it is not known to be in it."""
    if not folder:
        return None if path.startswith(("/", "..")) or UNKNOWN in path else path
    return path.removeprefix(folder + "/") if path.startswith(folder + "/") else None


def is_entrypoint(
    script: str, entrypoint: str, repositories: Iterable[str], only: Iterable[str] = ()
) -> bool:
    """Whether the script can be the entrypoint of a repository in one of these folders.

    `only`: scripts of which the repository is known to have no other with their name.
    """
    if not may_be(script, entrypoint):
        return False
    relative = [path for folder in repositories if (path := inside(script, folder)) is not None]
    # The path of an entrypoint with folders is specific enough, whatever folder it is started from.
    return "/" in entrypoint or not relative or entrypoint in relative or script in only
