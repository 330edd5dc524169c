"""Sandboxes in their own namespaces, made by bubblewrap (`bwrap`): no daemon, no root.

Code inside sees the host's system and Python read-only, or those of an unpacked image, and writes to a folder
that is removed with the sandbox. No other file of the host is visible: the new root contains only what is
bound into it.
"""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from pytest_super.errors import EngineError, InfrastructureError
from pytest_super.kernel.delivery import bridge_source
from pytest_super.kernel.providers.bridge_process import BridgeProcess, SocketStream
from pytest_super.kernel.providers.bwrap import (
    UID,
    bind,
    can_limit,
    copy_etc_files,
    isolation,
    launch,
    leave_keys,
    proc_options,
    way,
    why_not_isolated,
    why_unusable,
)
from pytest_super.kernel.providers.host_environment import CA_VARIABLES, pip_settings
from pytest_super.kernel.providers.registry import Provider
from pytest_super.kernel.providers.sandbox_folder import SandboxFolder, sweep_folders
from pytest_super.kernel.providers.unpacked_image import image_in, is_folder
from pytest_super.kernel.providers.unprivileged import is_open, unused_id
from pytest_super.kernel.providers.visible_system import system_of
from pytest_super.kernel.providers.watched_limits import OUT_OF_MEMORY, watch
from pytest_super.kernel.sandbox import (
    DEFAULT_MEMORY,
    DEFAULT_PIDS,
    Capabilities,
    SandboxSettings,
    WritableFolders,
    default_exceeded,
)
from pytest_super.tasks.sandbox_spec import SandboxSpec

WORKDIR, HOME, VENV = "/workspace", "/home/sandbox", "/venv"
CA_FILE, PIP_FILE = "/etc/pytest-super/ca.pem", "/etc/pytest-super/pip.conf"
ACCOUNTS = {
    "passwd": f"root:x:0:0::/root:/bin/sh\nsandbox:x:{UID}:{UID}::{HOME}:/bin/bash\n",
    "group": f"root:x:0:\nsandbox:x:{UID}:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
}
# With these, systemd-run finds its manager.
LAUNCHER_VARIABLES = ("PATH", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
# bwrap is killed when the thread that started it ends, and the threads that start sandboxes ahead end soon.
STARTER = ThreadPoolExecutor(1, thread_name_prefix="pytest-super-bubblewrap", initializer=leave_keys)


class BubblewrapProvider(Provider):
    """Works where bwrap is installed and this user can make user namespaces."""

    uses_host_python = True

    def why_not_isolated(self) -> str | None:
        return why_not_isolated()

    def why_unavailable(self) -> str | None:
        return why_unusable()

    def why_unprepared(self, settings: SandboxSettings) -> str | None:
        """Whether the folder of the image is not one. Images of an engine are ignored."""
        try:
            self.image_id(settings)
        except InfrastructureError as error:
            return str(error)
        return None

    def image_id(self, settings: SandboxSettings) -> str:
        image = settings.image
        return image_in(image).id if image and is_folder(image) else ""

    def make(self, spec: SandboxSpec, settings: SandboxSettings) -> BubblewrapSandbox:
        return BubblewrapSandbox(spec, settings)

    def sweep(self) -> None:
        sweep_folders()


class BubblewrapSandbox:
    """A Sandbox in namespaces. It ends when it is closed or this process ends, even by SIGKILL."""

    name = "bubblewrap"
    workdir = WORKDIR
    writable = WritableFolders(folders=(HOME, VENV, WORKDIR, "/tmp"), is_whole=True)

    def __init__(self, spec: SandboxSpec, settings: SandboxSettings) -> None:
        """Raises InfrastructureError for an image in a folder that is not one."""
        self.spec = spec
        self.settings = settings
        self._system = system_of(settings, has_network=bool(spec.network))
        self.software = self._system.software
        self._limits = (spec.memory or DEFAULT_MEMORY, spec.pids or DEFAULT_PIDS)
        self._folder = SandboxFolder()
        self._bridge: BridgeProcess | None = None
        self._user: int | None = None
        self._is_closed = threading.Event()
        self._excess = ""
        self.capabilities = Capabilities(
            # With a network, code inside can reach servers on the host's loopback.
            isolation=not spec.network and why_not_isolated() is None,
            no_network=True,
            # By a cgroup, or else by the thread that `open` starts.
            memory=True,
            pids=True,
            remark=why_not_isolated() or "",
        )

    @property
    def folder(self) -> Path:
        """The folder on the host that contains what is written inside, until `close`."""
        return self._folder.path

    def open(self) -> SocketStream:
        """Start the bridge inside. Raises InfrastructureError."""
        program = ["--new-session", "--as-pid-1", "--", f"{VENV}/bin/python", "-u", "-c", bridge_source()]
        limits = self._limits if can_limit() else None
        # Not the task's variables: by some of them, the programs before bwrap would load its code.
        given = self.settings.environment
        environment = {name: given[name] for name in LAUNCHER_VARIABLES if name in given}
        try:
            self._make_folder()
            with open(self._variables) as file:
                descriptor = file.fileno()
                options = [*self._bwrap(), "--args", str(descriptor), *program]
                command = launch(options, folder=self.folder, user=self._user, limits=limits)
                start = partial(BridgeProcess, command, env=environment, pass_fds=(descriptor,))
                self._bridge = STARTER.submit(start).result()
        except OSError as error:
            raise InfrastructureError(f"no bubblewrap sandbox: {error}") from error
        if limits is None:
            given_to_watch = (self._bridge.pid, *self._limits, self._is_closed, self._end)
            threading.Thread(target=watch, args=given_to_watch, daemon=True, name="super-limits").start()
        return self._bridge.stream

    def _end(self, cause: str) -> None:
        assert self._bridge is not None
        # Before the end, which is when the cause is asked for.
        self._excess = cause
        self._bridge.kill()

    def _make_folder(self) -> None:
        self._folder.make(Path(VENV), self._system.interpreter)
        (self.folder / "etc").mkdir()
        copy_etc_files(self._system.etc, self.folder / "etc")
        for name, text in ACCOUNTS.items():
            (self.folder / "etc" / name).write_text(text)
        # In a file: other users of the machine can read the arguments of a process.
        words = [word for item in self._environment().items() for word in ("--setenv", *item)]
        self._variables.write_text("\0".join(["--clearenv", *words]))
        if way().own_user:
            self._user = unused_id()
            self._folder.give(self._user)

    @property
    def _variables(self) -> Path:
        """The options of bwrap that set the variables inside."""
        return self.folder / "variables"

    def _bwrap(self) -> list[str]:
        """The options of bwrap up to the variables. Later binds cover earlier ones."""
        own = [(self.folder / "tmp", "/tmp"), (self.folder / "work", WORKDIR)]
        own += [(self.folder / "home", HOME), (self.folder / "venv", VENV)]
        files = [(str(self._readable(source, target)), target) for target, source in self._files().items()]
        return [
            *isolation(way(), has_network=bool(self.spec.network)),
            *self._system.binds(),
            *(*proc_options(), "--dev", "/dev", "--dir", "/run"),
            *(word for source, target in own for word in bind(source, target, option="--bind")),
            *self._system.binds_above(self.folder),
            *(word for source, target in [*files, *self._mounts()] for word in bind(source, target)),
            # Last: no mount point can be made after it.
            *("--remount-ro", "/etc", "--remount-ro", "/", "--chdir", WORKDIR),
        ]

    def _files(self) -> dict[str, Path]:
        """Files of settings by their path inside. Certificates and the user's own pip.conf need a network."""
        found = {PIP_FILE: self.settings.pip_config}
        if self.spec.network:
            given = {**pip_settings(self.settings.environment), **self.settings.environment}
            configured = given.get("PIP_CONFIG_FILE")
            found[CA_FILE] = self.settings.ca_bundle
            found[PIP_FILE] = self.settings.pip_config or (Path(configured) if configured else None)
        return {target: source for target, source in found.items() if source}

    def _readable(self, source: Path, target: str) -> Path:
        """The file, or a copy of it that the sandbox's user can read: pip's settings are often private."""
        if self._user is None or not source.exists() or is_open(source):
            return source
        # Files of different folders can have the same name; their places inside differ.
        copy = self.folder / Path(target).name
        copy.touch(0o600)
        copy.write_bytes(source.read_bytes())
        os.chown(copy, self._user, self._user)
        return copy

    def _mounts(self) -> Iterable[tuple[str, str]]:
        """Raises InfrastructureError for one that the sandbox's user cannot read."""
        for source in self.settings.mounts:
            if self._user is not None and os.path.exists(source) and not is_open(Path(source)):
                raise InfrastructureError(f"code inside cannot read {source}: `chmod -R o+rX {source}`")
        return self.settings.mounts.items()

    def _environment(self) -> dict[str, str]:
        files, variables = self._files(), self._system.variables()
        return {
            **variables,
            "PATH": f"{VENV}/bin:{variables['PATH']}",
            "VIRTUAL_ENV": VENV,
            "HOME": HOME,
            "TMPDIR": "/tmp",
            **(dict.fromkeys(CA_VARIABLES, CA_FILE) if CA_FILE in files else {}),
            **({"PIP_CONFIG_FILE": PIP_FILE} if PIP_FILE in files else {}),
            **self.spec.env,
        }

    def cause_of_death(self) -> str:
        """How the bridge ended. Raises EngineError if bwrap was killed, InfrastructureError for a default."""
        if self._bridge is None:
            return "it was never started"
        if self._excess == OUT_OF_MEMORY and self.spec.memory is None:
            raise default_exceeded("memory", DEFAULT_MEMORY)
        if self._excess:
            return self._excess
        words = self._bridge.cause_of_death()
        # Code inside sees no process outside. It can end the bridge, which bwrap reports by an exit code.
        if signal := self._bridge.signal:
            raise EngineError(f"bubblewrap was killed from outside the sandbox (signal {signal})")
        return words

    def keep(self) -> str:
        """Keep the folder, with a script that enters it in the same namespaces."""
        self._folder.keep()
        enter = self.folder / "enter"
        options = [*self._bwrap(), "--args", "3"]
        command = shlex.join(launch(options, folder=self.folder, user=self._user))
        variables = shlex.quote(str(self._variables))
        try:
            enter.write_text(f'#!/bin/sh\nexec {command} bash "$@" 3<{variables}\n')
            enter.chmod(0o700)
        except OSError as error:
            raise InfrastructureError(f"the sandbox's files cannot be kept: {error}") from error
        return str(enter)

    def close(self) -> None:
        self._is_closed.set()
        # When the first process of a pid namespace ends, Linux kills all others.
        if self._bridge is not None:
            self._bridge.close()
        self._folder.remove()
