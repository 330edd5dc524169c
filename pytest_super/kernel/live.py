"""The kernel of one sandbox while it lives: what its messages report, and waiting for that."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.cell import WENT_ON, CellResult, CellStateError, NoValueError, Outcome
from pytest_super.kernel.incoming import Message
from pytest_super.kernel.inside import frames
from pytest_super.kernel.link import Link
from pytest_super.kernel.output import CellOutput, output_text
from pytest_super.kernel.running_cell import (
    OUTPUT_KINDS,
    Listener,
    Listeners,
    Probe,
    RunningCell,
    execute_request,
)
from pytest_super.kernel.sandbox import Stream

# How long to wait for a cell to begin before interrupting it anyway.
BEGIN_SECONDS = 2.0
# IPython announces a cell, then runs callbacks, in which it swallows an interrupt, and only then the code.
CALLBACK_SECONDS = 0.05
# How long to wait for the death of a kernel that was killed.
DEATH_SECONDS = 10.0
# A cell that is not over by then is followed by a probe: code can break the messages that would end it.
PROBE_SECONDS = 1.0
# How long the published message of the first answered probe can take before the next probe.
PROOF_SECONDS = 0.02
LONGEST_PROOF_SECONDS = 1.0


class LiveKernel:
    """Runs one cell at a time over the stream of a sandbox.

    The link's reader thread handles the messages and changes the state; the methods wait for those changes.
    Each method takes the lock itself, so callers see no intermediate state.
    """

    def __init__(
        self, stream: Stream, *, clock: Callable[[], float], cause_of_death: Callable[[], str]
    ) -> None:
        """`cause_of_death` is the sandbox's."""
        self.link = Link(stream, self, clock=clock, cause_of_death=cause_of_death)
        self._changed = threading.Condition()
        self._clock = clock
        self._cell: RunningCell | None = None
        self._busy = 0.0
        self._restarting_since: float | None = None
        self._has_kernel = False
        # Why the kernel died; None while it lives.
        self._death: str | None = None
        self._listeners = Listeners()
        self._probe: Probe | None = None

    # Life

    def start(self, seconds: float, *, with_kernel: bool) -> None:
        """Return when the bridge works and its kernel, if any, runs cells. Raises InfrastructureError."""
        self._has_kernel = with_kernel
        self.link.start(with_kernel=with_kernel)
        if with_kernel:
            self._await_ready(seconds)
            return
        with self._changed:
            self._await_start(lambda: self.link.has_bridge, time.monotonic() + seconds)

    def require_kernel(self, seconds: float) -> None:
        """Start the kernel if it was not started. Raises InfrastructureError."""
        if not self._has_kernel:
            self._has_kernel = True
            self.link.start_kernel()
            self._await_ready(seconds)

    def restart(self, seconds: float) -> None:
        """Kill everything and restart the kernel, if any; one that does not start in time counts as dead."""
        if not self._has_kernel:
            self.link.kill()
            return
        with self._changed:
            if self._cell is not None:
                self._forget(self._cell)
            self._restarting_since = self._clock()
            self._death = None
            self.link.restart()
        try:
            self._await_ready(seconds)
        except InfrastructureError as error:
            with self._changed:
                self._death = self._death or str(error)
        finally:
            with self._changed:
                self._busy += self._clock() - self._restarting_since
                self._restarting_since = None

    @property
    def death(self) -> str | None:
        """Why the kernel died while its sandbox lives; None while it lives."""
        return self._death if self.link.is_open else None

    @property
    def is_alive(self) -> bool:
        """Whether neither the kernel nor its sandbox has ended."""
        return self._death is None and self.link.is_open

    @property
    def busy_seconds(self) -> float:
        """Seconds that cells and restarts took, a running one until now."""
        with self._changed:
            now, cell, since = self._clock(), self._cell, self._restarting_since
            restarting = 0.0 if since is None else now - since
            return self._busy + restarting + (0.0 if cell is None else cell.seconds(now))

    def _await_ready(self, seconds: float) -> None:
        """Return when it is proven that published messages arrive. Raises InfrastructureError.

        An answered request alone proves nothing: the subscription to IOPub may not be established yet, and
        whatever is published before that is lost without a trace. A print sent right after the first answer
        was lost in six of eight fresh kernels.
        """
        deadline = time.monotonic() + seconds
        with self._changed:
            self._await_start(lambda: self.link.has_kernel, deadline)
            pause = PROOF_SECONDS
            while not self._is_heard(self._send_probe(), pause, deadline):
                # On a busy machine each message can be late by more than the first pause.
                pause = min(2 * pause, LONGEST_PROOF_SECONDS)

    def _is_heard(self, probe: Probe, pause: float, deadline: float) -> bool:
        """Wait for the answer to a probe; whether what the kernel published has arrived after a pause too."""
        self._await_start(lambda: probe.is_answered, deadline)
        return self._changed.wait_for(lambda: probe.has_begun, pause)

    def _await_start(self, condition: Callable[[], bool], deadline: float) -> None:
        if not self._changed.wait_for(lambda: condition() or not self.is_alive, deadline - time.monotonic()):
            raise InfrastructureError("the kernel in the sandbox did not start in time")
        if self._death is not None:
            raise InfrastructureError(f"the kernel in the sandbox did not start: {self._death}")
        if not self.link.is_open:
            why = self.link.cause_of_end
            raise InfrastructureError(f"the sandbox ended before its kernel was ready: {why}")

    # Cells

    @property
    def has_cell(self) -> bool:
        """Whether a cell runs, or has ended and its result was not taken yet."""
        return self._cell is not None

    def run(self, code: str, listener: Listener | None) -> None:
        """Request a cell; its output begins with what arrived between cells. Raises CellStateError."""
        with self._changed:
            if self._cell is not None:
                raise CellStateError("a cell still runs: wait for it, interrupt it or restart the kernel")
            output = self._listeners.take_leftover()
        # Without the lock, because a listener can be slow. Only one thread runs cells.
        self._listeners.notify(listener, "".join(map(output_text, output.outputs())))
        with self._changed:
            self._begin(execute_request(code), listener, output)

    def evaluate(self, expression: str) -> str:
        """The value of a Python expression, as the kernel displays it. Raises as Kernel.evaluate does."""
        with self._changed:
            if self._cell is not None:
                raise CellStateError("a cell still runs")
            cell = self._begin(execute_request("", expression), None, CellOutput())
        result = self.await_cell(None)
        if shown := cell.of_expression("data", "text/plain"):
            return shown
        why = f"the kernel did not evaluate an expression: {result.outcome} {result.detail}"
        raise NoValueError(cell.of_expression("evalue") or why)

    def interrupt(self, seconds: float) -> CellResult:
        """Interrupt the running cell and wait for its end at most `seconds`."""
        with self._changed:
            cell = self._require_cell()
            cell.interrupts += 1
            # Between cells the kernel ignores the signal, and an interrupt that comes too early is lost.
            self._changed.wait_for(
                lambda: cell.has_begun or cell.is_over or not self.is_alive, min(seconds, BEGIN_SECONDS)
            )
            if cell.has_begun:
                self._has_ended(cell, CALLBACK_SECONDS)
            self.link.interrupt()
            # Always another one: a message wakes the event loop of a kernel whose cell awaits, and only then
            # does ipykernel cancel the cell.
            cell.probe = self._send_probe()
            if cell.interrupts > 1 and not self._has_ended(cell, seconds):
                cell.why_kernel_ends = "a second interrupt had no effect, so it was killed"
                self.link.kill()
                seconds = DEATH_SECONDS
        return self.await_cell(seconds, is_interrupt=True)

    def await_cell(self, seconds: float | None, *, is_interrupt: bool = False) -> CellResult:
        """Wait for the end of the running cell, or return TIMED_OUT after `seconds`.

        Raises CellStateError when no cell runs, EngineError when the sandbox is lost because its engine
        failed, and what the cell's listener raised.
        """
        began = time.monotonic()
        deadline = None if seconds is None else began + seconds
        with self._changed:
            cell = self._require_cell()
            while self.is_alive and not cell.is_over:
                left = PROBE_SECONDS if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    return cell.result(Outcome.TIMED_OUT, WENT_ON if cell.interrupts else "", self._clock())
                self._changed.wait(min(left, PROBE_SECONDS))
                if time.monotonic() - began > PROBE_SECONDS and cell.probe is None:
                    # When the kernel handles it, the cell is over.
                    cell.probe = self._send_probe()
            self._forget(cell)
        self._listeners.raise_error()
        return cell.result(*self._outcome(cell, is_interrupt), self._clock())

    def _has_ended(self, cell: RunningCell, seconds: float) -> bool:
        """Wait for the end of the cell, its kernel or its sandbox, with the lock."""
        return self._changed.wait_for(lambda: cell.is_over or not self.is_alive, seconds)

    def _begin(self, request: dict[str, Any], listener: Listener | None, output: CellOutput) -> RunningCell:
        """Send the request of a cell. If the sandbox has ended, the wait for the cell ends at once."""
        request_id = self.link.request("execute_request", request) if self.link.is_open else ""
        self._listeners.add(request_id, listener)
        self._cell = RunningCell(request_id, output=output, started=self._clock())
        return self._cell

    def _send_probe(self) -> Probe:
        self._probe = Probe(self.link.request("kernel_info_request", {}))
        return self._probe

    def _require_cell(self) -> RunningCell:
        if self._cell is None:
            raise CellStateError("no cell runs")
        return self._cell

    def _forget(self, cell: RunningCell) -> None:
        cell.stop(self._clock())
        self._busy += cell.seconds(self._clock())
        self._cell = None

    def _outcome(self, cell: RunningCell, is_interrupt: bool) -> tuple[Outcome, str]:
        if cell.is_over:
            return cell.outcome(while_interrupting=is_interrupt)
        if not self.link.is_open:
            return Outcome.SANDBOX_LOST, self.link.cause_of_end
        return Outcome.KERNEL_DIED, cell.why_kernel_ends or str(self._death)

    # What the link's reader thread reports

    def on_start(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def on_death(self, why: str) -> None:
        with self._changed:
            self._death = why
            self._stop_cell()

    def on_end(self) -> None:
        with self._changed:
            self._stop_cell()

    def _stop_cell(self) -> None:
        if self._cell is not None:
            self._cell.stop(self._clock())
        self._changed.notify_all()

    def on_message(self, message: Message) -> None:
        if message.channel == frames.IOPUB and message.kind in OUTPUT_KINDS:
            with self._changed:
                listener, text = self._listeners.add_output(message, self._cell)
            self._listeners.notify(listener, text)
            return
        with self._changed:
            if self._probe is not None:
                self._probe.handle(message)
            if self._cell is not None:
                self._cell.handle(message, self._clock())
            self._changed.notify_all()
