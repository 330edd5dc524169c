"""The stateful kernel of a trial, as the host uses it."""

from __future__ import annotations

import ast
import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_super.kernel.cell import CellResult, Outcome
from pytest_super.kernel.files import (
    CHANGES_SECONDS,
    DIGESTED,
    LARGEST_CHANGE,
    MOST_CHANGES,
    NAMED,
    PIECE,
    READ_LIMIT,
    ChangedFiles,
    Digests,
    FileDigest,
    FileEntry,
    FileSearch,
    write_archive,
)
from pytest_super.kernel.live import LiveKernel
from pytest_super.kernel.sandbox import require_running, writable_of
from pytest_super.kernel.schema import CHUNK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_super.kernel.http_requests import Answer
    from pytest_super.kernel.sandbox import Sandbox, WritableFolders

START_SECONDS = 120.0
INTERRUPT_SECONDS = 10.0
# A restart gets this time even if its caller's limit is shorter, such as a cell limit of less than a second:
# otherwise no restart would succeed, and the sandbox would stay without a kernel.
LEAST_RESTART_SECONDS = 10.0
VARIABLES = "__import__('json').dumps(dict(__import__('os').environ))"


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
        self.actions = 0
        """Number of cells, restarts, writes, uploads and HTTP servers: has anything acted inside?"""
        self._sandbox = sandbox
        self._clock = clock
        self._started: LiveKernel | None = None
        self._variables: dict[str, str] = {}

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
        self.actions += 1
        self._live.restart(max(LEAST_RESTART_SECONDS, min(timeout, START_SECONDS)))

    def kill(self) -> None:
        """Kill everything that runs in the sandbox, without waiting. Files can still be read."""
        self._live.kill()

    def keep(self) -> str:
        """Save the sandbox's files for a person; returns the command that opens them. Before `close`.

        Raises InfrastructureError when the files are gone.
        """
        return self._sandbox.keep()

    @property
    def writable(self) -> WritableFolders | None:
        """Where code inside can write; None if the sandbox does not say it."""
        return writable_of(self._sandbox)

    def close(self) -> None:
        """Kill everything inside and free all resources. Idempotent; never raises."""
        if self._started is not None:
            # The stream first: when it ends, the bridge kills all processes and removes its folders.
            self._started.close()
        self._sandbox.close()

    @property
    def _live(self) -> LiveKernel:
        if self._started is None:
            raise RuntimeError("the kernel was not started")
        return self._started

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
        self.actions += 1
        live = self._live
        live.require_kernel(START_SECONDS)
        if live.death is not None and not live.has_cell:
            detail = f"the kernel died ({live.death}) and was not restarted"
            return CellResult(outcome=Outcome.KERNEL_DIED, detail=detail)
        live.run(code, listener)
        return self._after_wait(live.await_cell(timeout))

    def evaluate(self, expression: str) -> str:
        """The value of a Python expression, as the kernel displays it. It does not count as a cell.

        Raises CellStateError while a cell runs, InfrastructureError when there is no value.
        """
        self._live.require_kernel(START_SECONDS)
        return self._live.evaluate(expression)

    def wait(self, timeout: float | None = None) -> CellResult:
        """Continue to wait for a cell that timed out. The result contains its output since the last one.

        Raises CellStateError when no cell runs.
        """
        return self._after_wait(self._live.await_cell(timeout))

    def interrupt(self, timeout: float = INTERRUPT_SECONDS) -> CellResult:
        """Interrupt the running cell as Ctrl-C does: INTERRUPTED, or TIMED_OUT when it still runs.

        A cell that ends by itself in that time counts as interrupted too. Raises CellStateError when no cell
        runs.
        """
        return self._after_wait(self._live.interrupt(timeout))

    def _after_wait(self, result: CellResult) -> CellResult:
        if result.is_running:
            self.require_running()
        return self._with_reports(result)

    def _with_reports(self, result: CellResult) -> CellResult:
        live = self._live
        return replace(result, processes=live.processes.take(), dropped=live.take_dropped())

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
        return 0.0 if live is None else live.busy_seconds + live.programs.busy_seconds

    def meter(self, charge: Callable[[float], None]) -> None:
        """From now on, call `charge` about twice a second with the processor time of the last sample.

        It is that of the kernel and of all processes in the sandbox that start from now on, and at most the
        time since the sample before. The reader thread calls it, and never if the sandbox cannot observe
        processes.
        """
        self._live.processes.meter(charge)

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
        self.actions += 1
        self._live.programs.run(command, {**self._variables, **environment}, files, listener)
        return self.wait_for_program(timeout)

    def wait_for_program(self, timeout: float) -> CellResult:
        """Continue to wait for a program that timed out. The result has its output since the last one."""
        return self._with_reports(self._live.programs.wait(timeout))

    def pass_on_variables(self) -> None:
        """From now on, programs have the variables that the kernel has now. Raises InfrastructureError."""
        self._variables = json.loads(ast.literal_eval(self.evaluate(VARIABLES)))

    def require_running(self) -> None:
        """Raises EngineError if somebody outside has stopped the sandbox, which then took the time.

        Done for each cell that times out. Who waits for a program, in many turns, does it at the end.
        """
        require_running(self._sandbox)

    # Files. When the sandbox is gone, all raise SandboxLostError, or EngineError if its engine failed.

    def read_file(self, path: str, limit: int = READ_LIMIT) -> bytes:
        """The file's bytes. A relative path is resolved as in a cell.

        Raises OSError with the path, as `open` does, and with EFBIG for more than `limit` bytes.
        """
        return self._live.files.data("read", path, limit)

    def read_pieces(self, path: str, size: int) -> Iterator[bytes]:
        """The file's first `size` bytes, in pieces that take little memory. Raises OSError as `open` does."""
        for start in range(0, size, PIECE):
            yield self._live.files.data("piece", path, min(PIECE, size - start), start=start)

    def write_file(self, path: str, data: bytes) -> None:
        """Make or overwrite the file, in place; its folder must exist. Raises OSError as `open` does."""
        self.actions += 1
        with self._live.files.sending("write", path, size=len(data)) as send:
            for start in range(0, len(data), CHUNK):
                send(data[start : start + CHUNK])

    def list_files(self, path: str = ".") -> list[FileEntry]:
        """The entries of the folder, sorted by name. Raises OSError as `os.scandir` does."""
        return [FileEntry(**entry) for entry in self._live.files.value("list", path)]

    def resolve(self, path: str = ".") -> str:
        """The real absolute path of `path`, which need not exist. By default the folder that cells run in."""
        return str(self._live.files.value("resolve", path))

    def search_files(
        self,
        path: str = ".",
        *,
        name: str = "*",
        text: str = "",
        hidden: bool = True,
        seconds: float = 10.0,
    ) -> FileSearch:
        """The regular files below the folder with this name and this text.

        Raises OSError as `os.scandir` does. `name` can be an fnmatch pattern and can begin with folders.
        `text` is one line, not a pattern; binary files are not searched. Unless `hidden`, names that begin
        with a dot are left out.
        """
        asked = {"name": name, "text": text, "hidden": hidden, "seconds": seconds}
        return FileSearch(**self._live.files.value("search", path, most=NAMED, **asked))

    def now(self) -> float:
        """The sandbox's time, in seconds since 1970."""
        return float(self._live.files.value("clock", ""))

    def changed_files(
        self, folder: str, pattern: str, *, since: float, most: int, seconds: float = 10.0
    ) -> ChangedFiles:
        """The files and links below whose absolute paths match, and that have changed since.

        `since` is by the sandbox's clock. Folders of packages are looked at without those in them.
        """
        asked = {"pattern": pattern, "since": since, "most": most, "seconds": seconds}
        found = self._live.files.value("changed", folder, **asked)
        return ChangedFiles(paths=dict(found["found"]), is_complete=found["is_complete"])

    def changes(self, folder: str) -> dict[str, str] | None:
        """The files below that were made, changed or removed since the last call; none at the first one.

        By their relative paths, hidden ones left out, and at most MOST_CHANGES: the SHA-256 of each, the size
        of one of more than LARGEST_CHANGE bytes, "" if it is gone. None if looking took too long.
        """
        asked = {"most": MOST_CHANGES, "largest": LARGEST_CHANGE, "seconds": CHANGES_SECONDS}
        found: dict[str, str] | None = self._live.files.value("changes", folder, **asked)
        return found

    def digests(self, path: str = ".", *, seconds: float = 60.0) -> Digests:
        """The regular files at or below `path`, with the digests of their content. Links are not followed.

        Raises OSError if there is no file or folder at `path`, or if it is a link.
        """
        asked = {"most": DIGESTED, "largest": READ_LIMIT, "seconds": seconds}
        found = self._live.files.value("digests", path, **asked)
        return Digests(
            files=[FileDigest(**file) for file in found["files"]], is_complete=found["is_complete"]
        )

    def remove(self, path: str) -> None:
        """Remove the file, link or folder, if it is there. Raises OSError as `os.unlink` does."""
        self.actions += 1
        self._live.files.data("remove", path)

    def upload(self, tree: Path, path: str) -> None:
        """Copy the content of the folder `tree` into the folder `path`, which is made if it is missing."""
        self.actions += 1
        with self._live.files.sending("upload", path) as send:
            write_archive(tree, send)

    def unpack(self, archive: Path, path: str) -> None:
        """Unpack a tar archive of the host's own making in the folder `path`, which is made if it is missing.

        Folders that its files need are made too. Absolute names leave the folder.
        """
        self.actions += 1
        with archive.open("rb") as file, self._live.files.sending("upload", path) as send:
            while chunk := file.read(CHUNK):
                send(chunk)

    def expect_script(self, path: str, content: bytes) -> None:
        """From now on, compare scripts whose path ends in `path` with `content` when a process runs them.

        If `path` is a bare name, also look whether it is the only one in its repository. b"" is compared with
        nothing. See `changed`, `kept_lines` and `only` of the processes in results.
        """
        self._live.processes.expect_script(path, content)

    # HTTP

    def serve(self, answer: Answer, headers: Sequence[str] = ()) -> str:
        """Serve HTTP on the sandbox's loopback; returns the base URL for programs inside.

        `answer` makes the reply to each request, in threads. It gets these headers of a request and no
        others. Raises InfrastructureError, and when the sandbox is gone the same as file operations.
        """
        self.actions += 1
        return self._live.http.listen(answer, headers)

    def stop_serving(self) -> None:
        """Answer no more requests; running ones are cancelled."""
        self._live.http.close()
