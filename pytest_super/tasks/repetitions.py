"""The pieces of a regular expression, and its length with its repetitions written out."""

from __future__ import annotations

import re
from math import prod

PIECE = re.compile(
    r"\\N\{[^}]*\}|\\x..|\\u.{4}|\\U.{8}|\\\d{1,3}|\\."  # an escape
    r"|\[\^?\]?(?:\\.|[^\]\\])*\]"  # a set
    r"|\(\?#[^)]*\)|\{\d*,?\d*\}|.",  # a comment, a quantifier, or one character
    re.DOTALL,
)
COMMENT = "(?#"
_LEAST = re.compile(r"\{\s*(\d+)")
_VERBOSE = re.compile(r"\(\?[a-zA-Z]*x")


def written_out(pattern: str) -> int:
    """Count the least pieces of a valid pattern with the least count of each repetition written out.

    That is how the package `regex` compiles it.
    """
    if _VERBOSE.search(pattern):
        # Blanks and comments hide what belongs together: all counts multiply.
        return len(pattern) * prod(max(int(count), 1) for count in _LEAST.findall(pattern))
    last, groups = 0, [0]
    for piece in PIECE.findall(pattern):
        if piece == "(":
            groups.append(0)
        elif count := _LEAST.match(piece):
            more = last * max(int(count[1]) - 1, 0)
            last += more
            groups[-1] += more
        elif not piece.startswith(COMMENT):
            last = groups.pop() if piece == ")" else 1
            groups[-1] += last
    return groups[0]
