"""The stateful kernel of a trial, seen from the host."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.cell import CellResult, Outcome, SandboxLostError
from pytest_super.kernel.connection import OWN_SILENCE_SECONDS, SILENCE_SECONDS
from pytest_super.kernel.files import ANSWER_SECONDS, READ_LIMIT, FileEntry, FileSearch
from pytest_super.kernel.link import KernelLink
from pytest_super.kernel.output import CellOutput
from pytest_super.kernel.running import RunningCell

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_super.kernel.calls import Answer
    from pytest_super.kernel.sandbox import Sandbox

START_SECONDS = 120.0
INTERRUPT_SECONDS = 10.0
# How long a cell may take to begin before an interrupt is sent all the same.
BEGIN_SECONDS = 2.0
# A cell that is not over by then gets a probe behind it: code can break the messages that end it.
PROBE_SECONDS = 1.0
# Between two requests of a cell that the kernel refused.
REFUSED_SECONDS = 0.05


class CellStateError(RuntimeError):
    """The state of the cell does not allow what was asked: to run one while one runs, or to wait for none."""


class Kernel:
    """Runs cells, one at a time, in the kernel of one sandbox.

    A result with outcome TIMED_OUT leaves the cell running. After KERNEL_DIED every further cell ends so
    until `restart`: the state is gone, and nothing restarts by itself. After SANDBOX_LOST nothing runs any
    more.
    Called from one thread; `interrupt`, `busy_seconds`, `is_running` and `close` from any.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        clock: Callable[[], float] = time.monotonic,
        start_seconds: float = START_SECONDS,
        silence_seconds: float = SILENCE_SECONDS,
        own_silence_seconds: float = OWN_SILENCE_SECONDS,
        file_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """`clock` measures `busy_seconds` and the `seconds` of results, nothing else.

        A sandbox that does not answer for `silence_seconds`, or does not go on with a file for
        `file_seconds`, is given up as lost; one that hears nothing from us for `own_silence_seconds`, because
        this process hangs or is stopped, ends itself.
        """
        self.workdir = sandbox.workdir
        self._sandbox = sandbox
        self._clock = clock
        self._start_seconds = start_seconds
        self._patience = {
            "silence": silence_seconds,
            "own_silence": own_silence_seconds,
            "file_patience": file_seconds,
        }
        self._opened: KernelLink | None = None
        self._busy = 0.0
        self._restarting_since: float | None = None
        self._lost_detail: str | None = None
        self._is_closed = False
        self.actions = 0
        """How often something was done inside: cells, files that were written, servers."""

    # Life

    def start(self) -> None:
        """Open the sandbox and return when the kernel runs cells and their output arrives.

        Raises what `Sandbox.open` raises, and InfrastructureError when no kernel starts.
        """
        stream = self._sandbox.open()
        self._opened = KernelLink(stream, clock=self._clock, lost=self._lost, **self._patience)
        self._opened.start()
        self._await_ready()

    def restart(self, timeout: float | None = None) -> None:
        """Kill all that runs in the sandbox and start a new kernel in it, without the state of the old.

        A running cell ends without a result. When no kernel starts, because of what was done in the sandbox,
        or none in `timeout` seconds, the next cell says so: it is KERNEL_DIED or SANDBOX_LOST.
        """
        link = self._link
        self.actions += 1
        with link.changed:
            if link.cell is not None:
                self._forget(link.cell)
            self._restarting_since = self._clock()
            link.restart()
        patience = self._start_seconds if timeout is None else min(timeout, self._start_seconds)
        try:
            link.await_ready(patience)
        except InfrastructureError as error:
            with link.changed:
                link.death = link.death or str(error)
        finally:
            with link.changed:
                self._busy += self._clock() - self._restarting_since
                self._restarting_since = None

    def keep(self) -> str:
        """Save the sandbox's files for a person; gives what to type to enter them. Before `close`.

        Raises InfrastructureError when they are gone.
        """
        return self._sandbox.keep()

    def close(self) -> None:
        """Kill everything inside and free all it held. Idempotent; never raises."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._opened is not None:
            self._opened.close()
        self._sandbox.close()

    @property
    def _link(self) -> KernelLink:
        if self._opened is None:
            raise RuntimeError("the kernel was not started")
        return self._opened

    def _await_ready(self) -> None:
        try:
            self._link.await_ready(self._start_seconds)
        except InfrastructureError as error:
            if self._link.end is None:
                raise
            raise InfrastructureError(f"{error}: {self._cause_of_end()}") from None

    @property
    def is_alive(self) -> bool:
        """Whether it was started, and neither it nor its sandbox has ended since."""
        link = self._opened
        return link is not None and link.death is None and link.end is None

    # Cells

    def execute(
        self, code: str, *, timeout: float | None = None, listener: Callable[[str], None] | None = None
    ) -> CellResult:
        """Run a cell as a notebook does and wait for its end, at most `timeout` seconds.

        What background processes and threads of earlier cells put out since the last cell ended comes first,
        in the result and to `listener`, which gets it at once as one text, shortened as in results. Then it
        gets all text of the cell as it streams, in the reader thread, also after a time-out, and what the
        cell's background puts out while later cells run.
        Raises CellStateError while a cell runs, EngineError when the sandbox is lost and its engine with it.
        """
        link = self._link
        self.actions += 1
        with link.changed:
            if link.cell is not None:
                raise CellStateError("a cell still runs: wait for it, interrupt it or restart the kernel")
            if link.end is None and link.death is not None:
                detail = f"the kernel died ({link.death}) and was not restarted"
                return CellResult(outcome=Outcome.KERNEL_DIED, detail=detail)
        output = link.take_leftover()
        if listener is not None:
            # Not under the lock: it may take its time.
            link.tell_leftover(listener, output)
        with link.changed:
            link.request(RunningCell(code, listener, output=output, started=self._clock()))
        return self._await_cell(timeout)

    def evaluate(self, expression: str) -> str:
        """The value of a Python expression, as the kernel shows it; no cell to those that count them.

        Raises CellStateError while a cell runs, InfrastructureError when there is no value.
        """
        link = self._link
        with link.changed:
            if link.cell is not None:
                raise CellStateError("a cell still runs")
            cell = RunningCell("", None, output=CellOutput(), started=self._clock(), expression=expression)
            link.request(cell)
        result = self._await_cell(None)
        if cell.value is None:
            raise InfrastructureError(f"the kernel does not tell its state: {result.outcome} {result.detail}")
        return cell.value

    def wait(self, timeout: float | None = None) -> CellResult:
        """Wait on for a cell that timed out: its output since the last result.

        CellStateError when none runs.
        """
        self._require_cell()
        return self._await_cell(timeout)

    def interrupt(self, timeout: float = INTERRUPT_SECONDS) -> CellResult:
        """Interrupt the running cell as Ctrl-C does: INTERRUPTED, or TIMED_OUT when it goes on all the same.

        A cell that ends by itself in that time counts as interrupted too. CellStateError when none runs.
        """
        link = self._link
        with link.changed:
            cell = self._require_cell()
            cell.is_interrupted = True
            # Between cells the kernel ignores the signal: it would be lost on a cell that has yet to begin.
            link.changed.wait_for(
                lambda: cell.has_begun or cell.is_over or link.death is not None or link.end is not None,
                min(timeout, BEGIN_SECONDS),
            )
            link.interrupt()
            link.probe()
        return self._await_cell(timeout, while_interrupting=True)

    @property
    def is_running(self) -> bool:
        """Whether a cell runs, or has ended without its result being taken by `wait` or `interrupt`."""
        return self._opened is not None and self._opened.cell is not None

    @property
    def busy_seconds(self) -> float:
        """How long cells ran in all: each from its request until it was over, a running one until now.

        With the time of restarts: code that an agent has left can run in them.
        """
        if self._opened is None:
            return 0.0
        with self._opened.changed:
            now, cell, since = self._clock(), self._opened.cell, self._restarting_since
            restarting = 0.0 if since is None else now - since
            return self._busy + restarting + (0.0 if cell is None else cell.seconds(now))

    # Files. All raise, when the sandbox is gone, SandboxLostError, or EngineError when its engine is too.

    def read_file(self, path: str, limit: int = READ_LIMIT) -> bytes:
        """The file's bytes. A relative path is what it is in a cell.

        OSError with the path, as `open` raises; EFBIG beyond `limit` bytes.
        """
        return self._link.files.read(path, limit)

    def write_file(self, path: str, data: bytes) -> None:
        """Make or overwrite the file, in place; its folder must exist. OSError as `open` raises."""
        self.actions += 1
        self._link.files.write(path, data)

    def list_files(self, path: str = ".") -> list[FileEntry]:
        """What the folder holds, by name. OSError as `os.scandir` raises."""
        return self._link.files.list(path)

    def resolve(self, path: str = ".") -> str:
        """The real absolute path of `path`, which need not exist; of `.`, the directory that cells run in."""
        return self._link.files.resolve(path)

    def search_files(
        self, path: str = ".", *, name: str = "*", text: str = "", hidden: bool = True, seconds: float = 10.0
    ) -> FileSearch:
        """The regular files below the folder with this name and this text. OSError as `os.scandir` raises.

        `name` may be a pattern of fnmatch's and have folders before it. `text` is one line and no pattern;
        binary files are not looked into. Where not `hidden`, what begins with a dot is left out.
        """
        return self._link.files.search(path, name=name, text=text, hidden=hidden, seconds=seconds)

    def upload(self, tree: Path, path: str) -> None:
        """Copy what the folder `tree` holds into the folder `path`, which is made where it is missing."""
        self.actions += 1
        self._link.files.upload(tree, path)

    # HTTP

    def serve(self, answer: Answer) -> str:
        """Serve HTTP on the sandbox's loopback; gives the base URL for what runs inside.

        `answer` makes the reply to each request, in threads. Raises InfrastructureError, and when the sandbox
        is gone what file operations raise.
        """
        self.actions += 1
        return self._link.calls.listen(answer)

    def stop_serving(self) -> None:
        """Answer no more requests; those under way are cancelled."""
        self._link.calls.close()

    # Waiting

    def _require_cell(self) -> RunningCell:
        cell = self._link.cell
        if cell is None:
            raise CellStateError("no cell runs")
        return cell

    def _await_cell(self, timeout: float | None, *, while_interrupting: bool = False) -> CellResult:
        link = self._link
        began = time.monotonic()
        deadline = None if timeout is None else began + timeout
        with link.changed:
            cell = self._require_cell()
            while not (self._is_settled(cell) or link.death is not None or link.end is not None):
                left = PROBE_SECONDS if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    return cell.result(Outcome.TIMED_OUT, "", self._clock())
                link.changed.wait(min(left, PROBE_SECONDS))
                if time.monotonic() - began > PROBE_SECONDS:
                    link.probe()
            self._forget(cell)
        return self._result(cell, while_interrupting)

    def _is_settled(self, cell: RunningCell) -> bool:
        """Whether the cell is over; one that the kernel refused is requested anew instead."""
        if cell.is_over and cell.is_aborted:
            self._link.changed.wait(REFUSED_SECONDS)
            self._link.request(cell)
        return cell.is_over

    def _forget(self, cell: RunningCell) -> None:
        """The cell is over: what it took is final."""
        cell.stop(self._clock())
        self._busy += cell.seconds(self._clock())
        self._link.cell = None

    def _result(self, cell: RunningCell, while_interrupting: bool) -> CellResult:
        link, now = self._link, self._clock()
        link.raise_listener_error()
        if cell.is_over:
            return cell.result(*cell.outcome(while_interrupting=while_interrupting), now)
        if link.end is not None:
            return cell.result(Outcome.SANDBOX_LOST, self._cause_of_end(), now)
        return cell.result(Outcome.KERNEL_DIED, str(link.death), now)

    def _lost(self) -> SandboxLostError:
        return SandboxLostError(self._cause_of_end())

    def _cause_of_end(self) -> str:
        """Why the stream ended; EngineError when it was the engine that failed."""
        if self._lost_detail is None:
            self._lost_detail = self._link.end or self._sandbox.cause_of_death()
        return self._lost_detail
