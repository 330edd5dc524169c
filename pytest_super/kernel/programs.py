"""Programs that a sandbox's bridge runs, one at a time, without its kernel: the host's side."""

import codecs
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pytest_super.kernel.cell import CellResult, Outcome
from pytest_super.kernel.output import CellOutput
from pytest_super.kernel.running_cell import Listener, Listeners, Running
from pytest_super.words import exit_code, exit_words

Texts = Mapping[str, str]
"""The variables of a program, or its files by their paths."""


class ProgramChannel:
    """Runs one program at a time. The reader thread calls `receive` and `end`."""

    def __init__(
        self, send_control: Callable[..., None], *, clock: Callable[[], float], why_ended: Callable[[], str]
    ) -> None:
        """`why_ended` says why the stream has ended, or raises EngineError."""
        self._send_control = send_control
        self._clock = clock
        self._why_ended = why_ended
        self._changed = threading.Condition()
        self._listeners = Listeners()
        self._program: RunningProgram | None = None
        self._number = 0
        self._before = 0.0
        self._has_ended = False

    @property
    def busy_seconds(self) -> float:
        """Seconds that programs took, a running one until now."""
        with self._changed:
            running = 0.0 if self._program is None else self._program.seconds(self._clock())
            return self._before + running

    def run(self, command: str, environment: Texts, files: Texts, listener: Listener | None) -> None:
        """Request a program. One that still runs, since its end was not awaited, counts as ended."""
        given = {"command": command, "environment": dict(environment), "files": dict(files)}
        with self._changed:
            self._stop()
            self._number += 1
            self._program = RunningProgram(self._number, listener, self._clock())
        self._send_control("program", json.dumps(given).encode(), id=self._number)

    def wait(self, seconds: float) -> CellResult:
        """Wait for the program's end, else TIMED_OUT. Raises EngineError, and what the listener raised."""
        with self._changed:
            program = self._program
            assert program is not None, "no program runs"
            self._changed.wait_for(lambda: program.is_over or self._has_ended, seconds)
            is_lost = self._has_ended and not program.is_over
            if program.is_over or is_lost:
                self._stop()
        self._listeners.raise_error()
        if is_lost:
            return program.result(Outcome.SANDBOX_LOST, self._why_ended(), self._clock())
        return program.result(*program.outcome(), self._clock())

    def receive(self, fields: dict[str, Any], printed: bytes) -> bool:
        """Accept a control frame of the sandbox: `printed` or `ended`. Whether it is of the program."""
        with self._changed:
            program = self._program
            if program is None or program.number != fields["id"] or program.is_over:
                return False
            text = program.receive(fields, printed, self._clock())
            self._changed.notify_all()
        # Without the lock, because a listener can be slow.
        self._listeners.notify(program.listener, text)
        return True

    def end(self) -> None:
        """The stream has ended."""
        with self._changed:
            self._has_ended = True
            if self._program is not None:
                self._program.stop(self._clock())
            self._changed.notify_all()

    def _stop(self) -> None:
        if self._program is not None:
            self._before += self._program.seconds(self._clock())
            self._program = None


class RunningProgram(Running):
    """The state of one program. The reader thread changes it."""

    def __init__(self, number: int, listener: Listener | None, started: float) -> None:
        super().__init__(CellOutput(), started)
        self.number = number
        self.listener = listener
        self.is_over = False
        self._error = ""
        # None also for a program that was not started.
        self._exit_code: int | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def receive(self, fields: dict[str, Any], printed: bytes, now: float) -> str:
        """Accept what it has printed, or its end; returns the text."""
        if "error" in fields:
            status = fields["status"]
            self._exit_code = None if status is None else exit_code(status)
            self._error = fields["error"] or ""
            self.is_over = True
            self.stop(now)
        text = self._decoder.decode(printed, final=self.is_over)
        return self._output.add("stream", {"name": "stdout", "text": text}) if text else ""

    def outcome(self) -> tuple[Outcome, str]:
        """How the program ended and why, or that it still runs."""
        if not self.is_over:
            return Outcome.TIMED_OUT, ""
        if self._exit_code is None:
            return Outcome.ERROR, self._error
        return Outcome.ERROR if self._exit_code else Outcome.OK, exit_words(self._exit_code)

    def result(self, outcome: Outcome, detail: str, now: float) -> CellResult:
        return replace(super().result(outcome, detail, now), exit_code=self._exit_code)
