"""The stateful kernel of a trial, as the host uses it."""

import json
import time
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.cell import CellResult, NoValueError, Outcome, SandboxLostError
from pytest_super.kernel.delivery import INSIDE
from pytest_super.kernel.files import SandboxFiles
from pytest_super.kernel.http_requests import Answer
from pytest_super.kernel.live import LiveKernel
from pytest_super.kernel.sandbox import Sandbox, WritableFolders

START_SECONDS = 120.0
INTERRUPT_SECONDS = 10.0
# A restart gets this time even if its caller's limit is shorter, such as a cell limit of less than a second:
# otherwise no restart would succeed, and the sandbox would stay without a kernel.
LEAST_RESTART_SECONDS = 10.0
# In a scope of its own, so that nothing stays in the kernel, and in letters that no display changes.
VALUE = (
    "(lambda values: exec({source!r}, values) or __import__('base64').b64encode("
    "values['to_json']({expression}).encode()).decode())({{}})"
)


class Kernel:
    """Runs cells, one at a time, in the kernel of one sandbox.

    A result with the outcome TIMED_OUT leaves the cell running. After KERNEL_DIED every further cell ends
    with the same outcome until `restart`: the state is lost, and nothing restarts by itself. After
    SANDBOX_LOST nothing runs any more.
    Call it from one thread; `interrupt`, `busy_seconds`, `is_running`, `kill` and `close` from any.
    """

    def __init__(self, sandbox: Sandbox, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` measures `busy_seconds` and the `seconds` of results, nothing else."""
        self.workdir = sandbox.workdir
        self._actions = 0
        self._sandbox = sandbox
        self._clock = clock
        self._started: LiveKernel | None = None
        self._variables: dict[str, str] = {}
        self._has_shell_lines = False
        """Whether the last cell can have run shell commands, whose terminals end with them."""

    # Life

    def start(self, *, with_kernel: bool = True) -> None:
        """Open the sandbox and return when the kernel runs cells and their output arrives.

        Unless `with_kernel`, the first cell starts it: programs and files need none. Raises what
        `Sandbox.open` raises, and InfrastructureError when the sandbox or its kernel does not start.
        """
        self._started = LiveKernel(
            self._sandbox.open(), clock=self._clock, cause_of_death=self._sandbox.cause_of_death
        )
        self._started.start(START_SECONDS, with_kernel=with_kernel)

    def restart(self, timeout: float = START_SECONDS) -> None:
        """Kill everything that runs in the sandbox and start a new kernel in it, without the old state.

        If there was no kernel yet, none is started.
        A running cell ends without a result. When no kernel starts within `timeout` seconds, at least
        LEAST_RESTART_SECONDS, which code in the sandbox can cause, the next cell reports it: KERNEL_DIED or
        SANDBOX_LOST.
        """
        self._actions += 1
        self._live.restart(max(LEAST_RESTART_SECONDS, min(timeout, START_SECONDS)))

    def kill(self) -> None:
        """Kill everything that runs in the sandbox, without waiting. Files can still be read."""
        self._live.link.kill()

    def keep(self) -> str:
        """Save the sandbox's files for a person; returns the command that opens them. Before `close`.

        Raises InfrastructureError when the files are gone.
        """
        return self._sandbox.keep()

    @property
    def writable(self) -> WritableFolders | None:
        """Where code inside can write; None if the sandbox does not say it."""
        found: WritableFolders | None = getattr(self._sandbox, "writable", None)
        return found

    @property
    def memory_kills(self) -> int:
        """How many processes the sandbox's memory limit has killed; 0 also where nobody knows it."""
        with suppress(SandboxLostError, OSError, InfrastructureError):
            return self.files.memory_kills() if self._sandbox.capabilities.memory else 0
        return 0

    def close(self) -> None:
        """Kill everything inside and free all resources. Idempotent; never raises."""
        if self._started is not None:
            # The stream first: when it ends, the bridge kills all processes and removes its folders.
            self._started.link.close()
        self._sandbox.close()

    @property
    def _live(self) -> LiveKernel:
        if self._started is None:
            raise RuntimeError("the kernel was not started")
        return self._started

    @cached_property
    def files(self) -> SandboxFiles:
        """The files of the sandbox, once it was started."""
        return SandboxFiles(self._live.link.files)

    @property
    def actions(self) -> int:
        """Number of cells, programs, restarts, writes and HTTP servers: has anything acted inside?"""
        return self._actions + self.files.writes

    @property
    def is_alive(self) -> bool:
        """Whether the kernel was started, and neither it nor its sandbox has ended since."""
        return self._started is not None and self._started.is_alive

    # Cells

    def execute(
        self, code: str, *, timeout: float | None = None, listener: Callable[[str], None] | None = None
    ) -> CellResult:
        """Run a cell as a notebook does and wait for its end, at most `timeout` seconds.

        Output that background processes and threads of earlier cells produced since the last cell ended
        comes first, in the result and to `listener`, which gets it at once as one text, clipped as in
        results. After that the listener gets all text of the cell as it arrives, in the reader thread: also
        after a time-out, and output of the cell's background processes while later cells run.
        Raises CellStateError while a cell runs, EngineError when the sandbox's engine failed,
        InfrastructureError when this is the first cell and no kernel starts.
        """
        self._actions += 1
        live = self._live
        live.require_kernel(START_SECONDS)
        if live.death is not None and not live.has_cell:
            detail = f"{live.death} (before this cell, which did not run)"
            return CellResult(outcome=Outcome.KERNEL_DIED, detail=detail)
        self._has_shell_lines = "!" in code or "system" in code
        live.run(code, listener)
        return self._after_wait(live.await_cell(timeout))

    def evaluate(self, expression: str) -> Any:
        """The value of a Python expression as `to_json` writes it. It does not count as a cell.

        Code in the kernel can forge it. Raises CellStateError while a cell runs, and InfrastructureError:
        NoValueError if the expression raises or its value is not JSON.
        """
        self._live.require_kernel(START_SECONDS)
        source = (INSIDE / "values.py").read_text(encoding="utf-8")
        text = self._live.evaluate(VALUE.format(source=source, expression=expression))
        try:
            return json.loads(b64decode(text.strip("'")))
        except (ValueError, RecursionError):
            raise NoValueError("what the kernel reports is not JSON of at most 6 MB") from None

    def wait(self, timeout: float | None = None) -> CellResult:
        """Continue to wait for a cell that timed out. The result contains its output since the last one.

        Raises CellStateError when no cell runs.
        """
        return self._after_wait(self._live.await_cell(timeout))

    def interrupt(self, timeout: float = INTERRUPT_SECONDS) -> CellResult:
        """Interrupt the running cell as Ctrl-C does: INTERRUPTED, or TIMED_OUT when it still runs.

        A cell that still runs after a second interrupt is ended with everything inside: KERNEL_DIED. A cell
        that ends by itself in that time counts as interrupted too. Raises CellStateError when no cell runs.
        """
        return self._after_wait(self._live.interrupt(timeout))

    def _after_wait(self, result: CellResult) -> CellResult:
        if result.is_running:
            self.require_running()
        return self._with_reports(result)

    def _with_reports(self, result: CellResult) -> CellResult:
        link = self._live.link
        observed = link.processes.take(look=result.is_running or self._has_shell_lines)
        return replace(result, **observed, dropped=link.incoming.take_dropped())

    @property
    def is_running(self) -> bool:
        """Whether a cell runs, or has ended and neither `wait` nor `interrupt` has returned its result."""
        return self._started is not None and self._started.has_cell

    @property
    def busy_seconds(self) -> float:
        """Total seconds that cells and programs ran, each from its request to its end, or until now.

        It includes restarts, because code that an agent left behind can run during them.
        """
        live = self._started
        return 0.0 if live is None else live.busy_seconds + live.link.programs.busy_seconds

    def meter(self, charge: Callable[[float], None]) -> None:
        """From now on, call `charge` about twice a second with the processor time of the last sample.

        It is that of the kernel and of all processes in the sandbox that start from now on, and at most the
        time since the sample before. The reader thread calls it, and never if the sandbox cannot observe
        processes.
        """
        self._live.link.processes.meter(charge)

    # Programs

    def run_program(
        self,
        command: str,
        environment: Mapping[str, str],
        files: Mapping[str, str],
        *,
        timeout: float,
        listener: Callable[[str], None] | None = None,
    ) -> CellResult:
        """Run `command` by `sh -c` in the directory of the kernel, and wait for its end, at most `timeout` s.

        `files` (path to text) are written first, in folders that are made if necessary. The program has an
        empty input, a session of its own, and `environment` besides the variables of the sandbox and those
        passed on. The listener gets its output as it arrives. TIMED_OUT leaves it running: see
        `wait_for_program`. Without an exit code, an ERROR says why it was not started. Processes that it
        leaves running keep running, and what they print is lost. Raises EngineError when the sandbox's
        engine failed.
        """
        self._actions += 1
        self._live.link.programs.run(command, {**self._variables, **environment}, files, listener)
        return self.wait_for_program(timeout)

    def wait_for_program(self, timeout: float) -> CellResult:
        """Continue to wait for a program that timed out. The result has all its output."""
        return self._with_reports(self._live.link.programs.wait(timeout))

    def pass_on_variables(self) -> None:
        """From now on, programs have the variables that the kernel has now. Raises InfrastructureError."""
        self._variables = self.evaluate("dict(__import__('os').environ)")

    def require_running(self) -> None:
        """Raises EngineError if somebody outside has stopped the sandbox, which then took the time.

        Done for each cell that times out. Who waits for a program, in many turns, does it at the end.
        """
        if hasattr(self._sandbox, "require_running"):
            self._sandbox.require_running()

    def expect_script(self, path: str, content: bytes) -> None:
        """From now on, compare scripts whose path ends in `path` with `content` when a process runs them.

        If `path` is a bare name, also look whether it is the only one in its repository. b"" is compared with
        nothing. See `changed`, `kept_lines` and `only` of the processes in results.
        """
        self._live.link.processes.expect_script(path, content)

    # HTTP

    def serve(self, answer: Answer, headers: Sequence[str] = ()) -> str:
        """Serve HTTP on the sandbox's loopback; returns the base URL for programs inside.

        `answer` makes the reply to each request, in threads. It gets these headers of a request and no
        others. Raises InfrastructureError, and when the sandbox is gone the same as `files`.
        """
        self._actions += 1
        return self._live.link.http.listen(answer, headers)

    def stop_serving(self) -> None:
        """Answer no more requests; running ones are cancelled."""
        self._live.link.http.close()
