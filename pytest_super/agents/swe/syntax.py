"""Whether an edit of a Python file introduces a syntax error. Nothing of the file is executed."""

from __future__ import annotations

import sys
import warnings

# Larger files are not checked: no person wrote them, and the parser is not quick on hostile ones.
CHECKED_BYTES = 2**20


def introduced_error(before: bytes, after: bytes, first: int, last: int) -> SyntaxError | None:
    """The error that the edit brings into a file, whose new lines are `first` to `last` of `after`.

    Python tells the first error of a file only. Of a file that was wrong before, one outside of the new
    lines may have stood behind that, and is not held against the edit, which could never be made else.
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
    """Why this Python would not compile the source; None where it would, or cannot tell."""
    if len(source) > CHECKED_BYTES:
        return None
    try:
        with warnings.catch_warnings():
            # Else a warning of an odd escape sequence is an error where warnings are errors.
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
    """The error as linters write it; the sandbox may have a newer Python, which takes more."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"- E999 {type(error).__name__}: {error.msg} (line {error.lineno}, as Python {version} reads it)"
