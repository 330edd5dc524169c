"""Checks whether an edit introduces a syntax error into a Python file. Never executes the file."""

from __future__ import annotations

import sys
import warnings

# Larger files are not checked: nobody writes them by hand, and the parser is slow on hostile input.
CHECKED_BYTES = 2**20


def introduced_error(before: bytes, after: bytes, first: int, last: int) -> SyntaxError | None:
    """The error that an edit introduces; its new lines are `first` to `last` of `after`.

    Python reports only the first error of a file. If the file had an error before, an error outside the new
    lines can be an older one that was hidden, so it is ignored; otherwise such a file could never be edited.
    """
    error = syntax_error(after)
    if error is None:
        return None
    old = syntax_error(before)
    if old is None:
        return error
    is_old = (old.msg, old.text) == (error.msg, error.text)
    return error if not is_old and first <= (error.lineno or 0) <= last else None


def syntax_error(source: bytes) -> SyntaxError | None:
    """The error of this Python's compiler; None if there is none, or if the source is too large to check."""
    if len(source) > CHECKED_BYTES:
        return None
    try:
        with warnings.catch_warnings():
            # Under `-W error`, a warning about an invalid escape sequence would be raised as an error.
            warnings.simplefilter("ignore")
            compile(source, "<edited>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error
    except ValueError as error:
        return SyntaxError(str(error))
    except (RecursionError, MemoryError, OverflowError):
        return None
    return None


def error_line(error: SyntaxError) -> str:
    """The error in the form of linters. The sandbox's Python can be newer and accept more."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"- E999 {type(error).__name__}: {error.msg} (line {error.lineno}, as Python {version} reads it)"
