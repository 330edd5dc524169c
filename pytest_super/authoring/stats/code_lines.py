"""Lines of code in cells and edits, as SUPER counts them (section 3.4): without blank lines and comments."""

from __future__ import annotations

import io
import re
import tokenize
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_super.tasks.task import Edit

SHELLS = frozenset({"bash", "sh", "script", "system", "sx", "!"})
PYTHON = frozenset({"time", "timeit", "prun", "capture", "debug", "python", "python3"})
_CELL_MAGIC = re.compile(r"%%(?P<name>!|\w+)(?P<rest>.*)")


def lines_of_cell(source: str) -> int:
    """Lines of a notebook cell that are neither blank nor only a comment; shell lines and magics count."""
    lines = source.strip("\n").split("\n")
    magic = _CELL_MAGIC.match(lines[0])
    if magic is None:
        return count(lines, comments_of_python(lines))
    body = lines[1:]
    return 1 + count(body, comments_under(magic["name"], magic["rest"].strip(), body))


def comments_under(magic: str, argument: str, body: list[str]) -> set[int]:
    """Indices of the comments in the body of a cell magic."""
    suffix = argument.rpartition(".")[2] if magic in ("writefile", "file") else ""
    if magic in SHELLS or suffix in ("sh", "bash"):
        return comments_of_shell(body)
    return comments_of_python(body) if magic in PYTHON or suffix == "py" else set()


def lines_of_edit(edit: Edit) -> int:
    """Changed lines of an edit: a line that is replaced by another counts once."""
    before, after = edit.before.splitlines(), edit.after.splitlines()
    # By default difflib ignores lines that are frequent in a long text.
    changes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in changes if tag != "equal")


def count(lines: list[str], comments: set[int]) -> int:
    return sum(bool(line.strip()) and index not in comments for index, line in enumerate(lines))


def comments_of_shell(lines: list[str]) -> set[int]:
    return {index for index, line in enumerate(lines) if line.lstrip().startswith("#")}


def comments_of_python(lines: list[str]) -> set[int]:
    """Indices of the lines that are only a comment; in invalid Python, of the lines that begin with `#`."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline))
    except (tokenize.TokenError, SyntaxError, UnicodeDecodeError):
        # Python 3.12 and later raise a UnicodeDecodeError for a carriage return within a line.
        return comments_of_shell(lines)
    starts = [token.start for token in tokens if token.type == tokenize.COMMENT]
    # The line after a backslash belongs to the one before.
    return {
        row - 1
        for row, column in starts
        if not lines[row - 1][:column].strip() and not lines[row - 2].endswith("\\")
    }
