"""The processes that a sandbox has reported: what ran, from when to when, and how it ended."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

# How long a sandbox can take to look at its processes. It is busy, but it lives.
ANSWER_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedProcess:
    """A process of the sandbox that names a file in its arguments, between two calls of exec.

    A fork that has not called exec is part of its parent.
    """

    number: int
    """Identifies it among all reports of the sandbox."""
    pid: int
    arguments: list[str]
    """At most 4,096 bytes of them."""
    executable: str | None = None
    """None if it could not be read, as that of another user."""
    is_python: bool | None = None
    """Whether the executable is a Python by its symbols; None if it could not be read."""
    files: dict[str, str] = field(default_factory=dict)
    """Real paths of the files that the arguments name, by position; `stdin`, and the `script` of a shell.

    Paths in the sandbox's working directory are relative to it.
    """
    repositories: list[str] = field(default_factory=list)
    """The git repositories that contain these files."""
    only: list[str] = field(default_factory=list)
    """Those of the files that can be the task's script, as the only one of its name in its repository."""
    changed: bool | None = None
    """Whether its script differed from the expected one when the process was first seen; None without one."""
    kept_lines: float | None = None
    """The portion of the expected script's lines that were in it, from 0 to 1."""
    started: str = ""
    """ISO 8601 with offset."""
    seconds: float | None = None
    """From its start to its end, without the time for which it was stopped; None while it runs."""
    status: int | None = None
    """The wait status; None while it runs, and where the system does not tell it."""
    replaced: bool = False
    """It ended by exec: the process goes on as another program."""


def read_process(fields: dict[str, Any]) -> ObservedProcess:
    """The process of a report."""
    started, ended, stopped = (fields.pop(name) for name in ("started", "ended", "stopped"))
    seconds = None if ended is None else round(max(0.0, ended - started - (stopped or 0.0)), 3)
    known = {name: value for name, value in fields.items() if value is not None}
    started = datetime.fromtimestamp(started, UTC).isoformat(timespec="milliseconds")
    return ObservedProcess(**known, started=started, seconds=seconds)


class ProcessChannel:
    """The reports on the processes of one sandbox. The reader thread calls `receive` and `end`."""

    def __init__(self, send_control: Callable[..., None]) -> None:
        self._send_control = send_control
        self._changed = threading.Condition()
        self._new: dict[int, ObservedProcess] = {}
        self._running: set[int] = set()
        self._answer: dict[str, str] = {}
        self._is_observing = self._has_ended = False
        self._charge: Callable[[float], None] | None = None

    def expect_script(self, path: str, content: bytes) -> None:
        """See Kernel.expect_script."""
        self._send_control("observe", content, path=path)

    def meter(self, charge: Callable[[float], None]) -> None:
        """See Kernel.meter."""
        self._charge = charge
        self._send_control("meter")

    def take(self, *, look: bool) -> dict[str, Any]:
        """The fields of CellResult on processes; none if the sandbox cannot observe them.

        Asks for a look now if one runs, or if `look` says so: the report of an end can come after that of its
        cell. A look takes as long as half a cell.
        """
        with self._changed:
            if not self._is_observing:
                return {}
            self._answer = {}
            if (look or self._running) and not self._has_ended:
                self._send_control("observe")
                self._changed.wait_for(lambda: self._answer or self._has_ended, ANSWER_SECONDS)
            new, self._new = list(self._new.values()), {}
            return {"processes": new, **self._answer}

    def receive(self, op: str, fields: dict[str, Any]) -> None:
        """Accept a control frame of the sandbox: `hello`, `process`, `observed` or `used`."""
        if op == "used":
            if self._charge is not None:
                self._charge(fields["seconds"])
            return
        with self._changed:
            if op == "hello":
                self._is_observing = bool(fields["observes"])
            elif op == "observed":
                self._answer = fields
            else:
                process = read_process(fields)
                self._new[process.number] = process
                (self._running.add if process.seconds is None else self._running.discard)(process.number)
            self._changed.notify_all()

    def end(self) -> None:
        """The stream has ended."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()
