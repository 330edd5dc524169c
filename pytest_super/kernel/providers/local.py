"""A sandbox on this machine, of the same user: a fresh directory, a fresh virtual environment, few variables.

It keeps a trial's files and packages apart from the host's and leaves nothing behind. It isolates nothing:
code inside can read and change whatever the user can.
"""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import socket
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.delivery import bridge_source
from pytest_super.kernel.inside.processes import KEEP, kill_all
from pytest_super.kernel.providers.host_environment import allowed_environment, make_environment, pip_settings
from pytest_super.kernel.sandbox import Capabilities
from pytest_super.platform import MARKER, marked_processes

if TYPE_CHECKING:
    from collections.abc import Mapping

# How long the bridge has to kill all and leave before we do it ourselves.
CLOSE_SECONDS = 5.0


class SocketStream:
    """One end of a socket pair: unlike a pipe it lets a blocked reader go when it is closed."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def read(self, size: int) -> bytes:
        return self._end.recv(size)

    def write(self, data: bytes) -> None:
        self._end.sendall(data)

    def close(self) -> None:
        try:
            self._end.shutdown(socket.SHUT_RDWR)
        except OSError:
            return


class LocalSandbox:
    """A subprocess in a fresh directory. Claims no capability: it enforces no limit."""

    capabilities = Capabilities()

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        """`env`: the task's own variables, which go before the host's."""
        self.marker = secrets.token_hex(16)
        self._root = Path(tempfile.gettempdir()).resolve() / f"super-{self.marker[:12]}"
        self._env = dict(env or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._end: socket.socket | None = None
        self._log: IO[bytes] | None = None
        self.workdir = str(self._root / "work")

    def open(self) -> SocketStream:
        """Start the bridge in a session of its own; InfrastructureError when that fails."""
        try:
            self._root.mkdir(0o700)
            for name in ("work", "home", "tmp"):
                (self._root / name).mkdir()
            python = make_environment(self._root / "venv")
            return self._spawn(python)
        except OSError as error:
            raise InfrastructureError(f"no local sandbox: {error}") from error

    def _spawn(self, python: Path) -> SocketStream:
        ours, theirs = socket.socketpair()
        self._end = ours
        # Outside of the folder, which the bridge removes when it crashes too.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        with theirs:
            self._process = subprocess.Popen(
                # The bridge removes the directory too: when we are killed nobody else would.
                [str(python), "-u", "-c", bridge_source(), str(self._root)],
                cwd=self.workdir,
                env=self._environment(),
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._log,
                start_new_session=True,
            )
        return SocketStream(ours)

    def _environment(self) -> dict[str, str]:
        venv = self._root / "venv"
        allowed = allowed_environment(os.environ)
        return {
            **allowed,
            **pip_settings(os.environ),
            "PATH": f"{venv / 'bin'}:{allowed.get('PATH', os.defpath)}",
            "VIRTUAL_ENV": str(venv),
            "HOME": str(self._root / "home"),
            "TMPDIR": str(self._root / "tmp"),
            **self._env,
            MARKER: self.marker,
        }

    def cause_of_death(self) -> str:
        """How the bridge ended. There is no engine that could fail to answer."""
        process = self._process
        if process is None:
            return "it was never started"
        try:
            code = process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            return "its stream was closed from inside"
        return f"killed by signal {-code}" if code < 0 else f"ended with exit code {code}{self._last_words()}"

    def _last_words(self) -> str:
        if self._log is None or self._log.closed:
            return ""
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").split("\n")
        return f": {lines[-2]}" if len(lines) > 1 else ""

    def keep(self) -> str:
        """Let the folder stay after close; gives what to type to enter it.

        InfrastructureError when it is gone.
        """
        try:
            (self._root / KEEP).touch()
        except OSError as error:
            raise InfrastructureError(f"the sandbox's files are gone: {error}") from error
        venv = shlex.quote(str(self._root / "venv"))
        return f"cd {shlex.quote(self.workdir)} && env VIRTUAL_ENV={venv} PATH={venv}/bin:$PATH bash"

    def close(self) -> None:
        """Kill every process of the sandbox and remove its directory. Idempotent; never raises."""
        if self._end is not None:
            SocketStream(self._end).close()
        if self._process is not None:
            self._await_bridge(self._process)
        # What a bridge that was killed itself has left.
        kill_all(lambda: marked_processes(self.marker))
        for opened in (self._end, self._log):
            if opened is not None:
                opened.close()
        if not (self._root / KEEP).exists():
            remove_tree(self._root)

    def _await_bridge(self, process: subprocess.Popen[bytes]) -> None:
        try:
            process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def remove_tree(root: Path) -> None:
    """Remove the folder, what was made unwritable in it too."""
    for _ in range(2):
        shutil.rmtree(root, ignore_errors=True)
        if not root.exists():
            return
        for folder, _, _ in os.walk(root):
            with suppress(OSError):
                os.chmod(folder, 0o700)
