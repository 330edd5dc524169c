"""A sandbox on this machine, as the same user: a fresh folder, a fresh virtual environment, few variables.

It separates a trial's files and packages from the host's and leaves nothing behind. It does not isolate: code
inside can read and change whatever the user can.
"""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Mapping
from contextlib import suppress

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.delivery import bridge_source
from pytest_super.kernel.inside.processes import kill_all
from pytest_super.kernel.providers import warm_kernels
from pytest_super.kernel.providers.bridge_process import BridgeProcess, SocketStream
from pytest_super.kernel.providers.host_environment import allowed_environment, pip_settings
from pytest_super.kernel.providers.registry import Provider
from pytest_super.kernel.providers.sandbox_folder import SandboxFolder, sweep_folders
from pytest_super.kernel.sandbox import Capabilities, SandboxSettings, WritableFolders
from pytest_super.platform import MARKER, marked_processes
from pytest_super.platform.forks.start import can_fork
from pytest_super.tasks.sandbox_spec import SandboxSpec


class LocalProvider(Provider):
    """Works wherever pytest does."""

    uses_host_python = True

    def why_not_isolated(self) -> str:
        return ""

    def make(self, spec: SandboxSpec, settings: SandboxSettings) -> LocalSandbox:
        return LocalSandbox(spec.env, settings.environment, settings.labels.get("run", ""))

    def sweep(self) -> None:
        sweep_folders()


class LocalSandbox:
    """A subprocess in a fresh folder. It claims no capability, because it enforces no limit."""

    name = "local"
    capabilities = Capabilities()

    def __init__(
        self, env: Mapping[str, str] | None = None, host: Mapping[str, str] = os.environ, run: str = ""
    ) -> None:
        """`env` overrides the variables of `host`. Sandboxes of one `run` are forks of one process."""
        # Python heeds some variables only when it starts.
        self._run = run if can_fork() and not env else ""
        self.marker = secrets.token_hex(16)
        self._folder = SandboxFolder()
        self._env = dict(env or {})
        self._host = host
        self._bridge: BridgeProcess | None = None
        self._venv = self._folder.path / "venv"
        self.workdir = str(self._folder.path / "work")

    def open(self) -> SocketStream:
        """Start the bridge in a session of its own. Raises InfrastructureError."""
        # The bridge removes the folder too, in case this process is killed.
        folder = str(self._folder.path)
        try:
            self._folder.make()
            self._bridge = self._fork(folder) or BridgeProcess(
                [f"{self._venv}/bin/python", "-u", "-c", bridge_source(), folder],
                cwd=self.workdir,
                env=self._environment(),
            )
        except OSError as error:
            raise InfrastructureError(f"no local sandbox: {error}") from error
        return self._bridge.stream

    def _fork(self, folder: str) -> BridgeProcess | None:
        """The bridge as a fork, or None where that is not possible. Raises OSError."""
        if not self._run:
            return None
        with suppress(ConnectionError, FileNotFoundError):
            forks = warm_kernels.socket_of(self._run)
            command = [warm_kernels.code(), folder]
            return BridgeProcess(command, cwd=self.workdir, env=self._environment(), forks=forks)
        return None

    def _environment(self) -> dict[str, str]:
        allowed = allowed_environment(self._host)
        return {
            **allowed,
            **pip_settings(self._host),
            "PATH": f"{self._venv}/bin:{allowed.get('PATH', os.defpath)}",
            "VIRTUAL_ENV": str(self._venv),
            "HOME": str(self._folder.path / "home"),
            "TMPDIR": str(self._folder.path / "tmp"),
            **self._env,
            # Last: a task's variable of this name must not hide its processes from `close`.
            MARKER: self.marker,
        }

    @property
    def writable(self) -> WritableFolders:
        """Code inside can write elsewhere too, wherever the user can."""
        home, work = self._folder.path / "home", self.workdir
        return WritableFolders(folders=(str(home), str(self._venv), work), is_whole=False)

    def cause_of_death(self) -> str:
        """How the bridge ended. No engine is involved that could fail to answer."""
        return self._bridge.cause_of_death() if self._bridge else "it was never started"

    def keep(self) -> str:
        self._folder.keep()
        venv = shlex.quote(str(self._venv))
        return f"cd {shlex.quote(self.workdir)} && env VIRTUAL_ENV={venv} PATH={venv}/bin:$PATH bash"

    def close(self) -> None:
        if self._bridge is not None:
            self._bridge.close()
        # A bridge that was killed has not ended its processes.
        kill_all(lambda: marked_processes(self.marker))
        self._folder.remove()
