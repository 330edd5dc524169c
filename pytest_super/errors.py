"""The exceptions that users of the package meet, and words for the messages of all parts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# C0 and C1 except tab and newline, changes of direction, and characters that cannot be encoded.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


class SuperError(Exception):
    """Base of our errors. Its text is a message for a person: what is wrong, where, what to do."""


class TaskFileError(SuperError):
    """A task file has errors. The text lists all of them, one `file:line:col: message` a line."""


class InfrastructureError(SuperError):
    """The system around the agent failed: engine, host, image, package index, model API.

    The trial is an *error*, which is counted apart from the agent's failures. `is_final` means that every
    further trial would fail in the same way, so the run ends.
    """

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final


class EngineError(InfrastructureError):
    """The container engine does not answer, or refuses a request."""


class UnsupportedError(InfrastructureError):
    """A task requires a limit or a resource that its sandbox cannot enforce or provide."""


class TrialEnded(BaseException):
    """The trial is over. Raised at the wall limit, and by every action of the agent after the end.

    Not an Exception, so that an agent's `except Exception` around its own errors does not catch it.
    """

    def __init__(self, stop_reason: str) -> None:
        super().__init__(stop_reason)
        self.stop_reason = stop_reason


def printable(text: str) -> str:
    """Text of a task file, an agent, a sandbox or a model, as it can be shown on a terminal.

    It has no characters that move the cursor or cannot be encoded.
    """
    return CONTROL.sub("?", text)


def printable_line(text: str) -> str:
    """The same on one line, so that no part of it looks like another message."""
    return printable(text.replace("\n", " | "))


def exit_words(code: int) -> str:
    """How a program ended, by its exit code as `subprocess` has it."""
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def did_you_mean(name: str, known: Iterable[str], most: int = 1) -> str:
    """The end of a message about an unknown name: the `most` known names closest to it, or "" without one."""
    # Not at the top: only a message needs it.
    import difflib

    by_lower = {one.lower(): one for one in known}
    close = [by_lower[one] for one in difflib.get_close_matches(name.lower(), by_lower, n=most)]
    return f"; did you mean {' or '.join(f'`{one}`' for one in close)}?" if close else ""
