"""Paths as the text of cells names them, compared as far as they are known."""

from __future__ import annotations

import posixpath
import re

# A part that only the running shell or interpreter knew.
UNKNOWN = "{?}"
_UNKNOWN_PART = re.compile(r".*[${*?`\[].*|~.*|\.\.", re.DOTALL)


def join(folder: str, path: str) -> str:
    """`path` as seen from `folder`; "" is the sandbox's working directory."""
    if path.startswith(("~", "$", "{")):
        return path
    joined = posixpath.normpath(posixpath.join(folder, path))
    return "" if joined == "." else joined


def known_parts(path: str) -> list[str]:
    """The parts at the end of the path that are known. A known path begins with the part "." or "/"."""
    parts = [part for part in path.split("/") if part]
    for index in range(len(parts) - 1, -1, -1):
        if _UNKNOWN_PART.fullmatch(parts[index]):
            return parts[index + 1 :]
    return ["/" if path.startswith("/") else ".", *parts]


def may_be(path: str, wanted: str) -> bool:
    """Whether `path` can be the file `wanted` in some folder, as far as it is known."""
    given, parts = known_parts(path), wanted.split("/")
    shared = min(len(given), len(parts))
    return shared > 0 and given[-shared:] == parts[-shared:]


def inside(path: str, folder: str) -> str | None:
    """`path` relative to `folder`; None if it is not known to be in it."""
    if not folder:
        return None if path.startswith(("/", "..")) or UNKNOWN in path else path
    return path.removeprefix(folder + "/") if path.startswith(folder + "/") else None
