"""Sandboxes in their own namespaces, made by bubblewrap (`bwrap`): no daemon, no root, no image.

Code inside sees the host's system and Python read-only, and writes to a folder that is removed with the
sandbox. No other file of the host is visible: the new root contains only what is bound into it.
"""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.delivery import bridge_source
from pytest_super.kernel.providers.bridge_process import BridgeProcess
from pytest_super.kernel.providers.host_environment import (
    CA_VARIABLES,
    PACKAGE,
    allowed_environment,
    is_within,
    pip_settings,
    python_parts,
)
from pytest_super.kernel.providers.registry import Provider
from pytest_super.kernel.providers.sandbox_folder import SandboxFolder, sweep_folders
from pytest_super.kernel.sandbox import Capabilities

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_super.kernel.providers.bridge_process import SocketStream
    from pytest_super.kernel.sandbox import SandboxSettings
    from pytest_super.tasks.sandbox_spec import SandboxSpec

WORKDIR, HOME, VENV = "/workspace", "/home/sandbox", "/venv"
CA_FILE, PIP_FILE = "/etc/pytest-super/ca.pem", "/etc/pytest-super/pip.conf"
# Not root, even if pytest runs as root: tar would try to set the owners of files, which takes a capability.
UID = "1000"
ACCOUNTS = {
    "passwd": f"root:x:0:0::/root:/bin/sh\nsandbox:x:{UID}:{UID}::{HOME}:/bin/bash\n",
    "group": f"root:x:0:\nsandbox:x:{UID}:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
}
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
# The parts of /etc that programs need, without accounts, keys or configurations of services.
ETC = (
    *("alternatives", "ca-certificates", "debian_version", "fonts", "inputrc", "ld.so.cache", "ld.so.conf"),
    *("ld.so.conf.d", "locale.alias", "localtime", "magic", "mime.types", "nsswitch.conf", "os-release"),
    *("perl", "pki", "protocols", "python3", "services", "ssl", "terminfo", "timezone", "xattr.conf"),
)
ETC_OF_NETWORK = ("resolv.conf", "gai.conf", "host.conf", "pip.conf")
COPIES = "lib*/python3*/*-packages/pytest_super"
PROBE_SECONDS = 20.0
HOW_TO_INSTALL = "install it (the package `bubblewrap` of most distributions)"
HOW_TO_PERMIT = (
    "user namespaces are forbidden here; the sysctls kernel.unprivileged_userns_clone, "
    "user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns, or a container's seccomp "
    "profile, permit them"
)
# In bytes; in processes and threads. As in containers.
DEFAULT_MEMORY, DEFAULT_PIDS = 4 * 2**30, 1024
NO_LIMITS = "limits need a running systemd that provides cgroups for this user"
BUS_VARIABLES = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
SCOPE_FOLDER = '"/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)"'
SHOW_LIMITS = f"cd {SCOPE_FOLDER} && cat memory.max pids.max"
# The bridge reads from the cgroup whether memory ran out.
BWRAP_IN_SCOPE = f'unset {" ".join(BUS_VARIABLES)}; exec "$0" --ro-bind {SCOPE_FOLDER} /sys/fs/cgroup "$@"'
# bwrap is killed when the thread that started it ends, and the threads that start sandboxes ahead end soon.
STARTER = ThreadPoolExecutor(1, thread_name_prefix="pytest-super-bubblewrap")


class BubblewrapProvider(Provider):
    """Works where bwrap is installed and this user can make user namespaces."""

    isolates = True
    uses_host_python = True

    def why_unavailable(self, settings: SandboxSettings) -> str | None:  # noqa: ARG002
        return why_unusable()

    def make(self, spec: SandboxSpec, settings: SandboxSettings) -> BubblewrapSandbox:
        return BubblewrapSandbox(spec, settings)

    def sweep(self) -> None:
        sweep_folders()


@cache
def why_unusable() -> str | None:
    """Why bwrap cannot be used, for a person; None if it can. Tried once in a process."""
    if shutil.which("bwrap") is None:
        return f"there is no program bwrap: {HOW_TO_INSTALL}"
    command = ["bwrap", *isolation(has_network=False), *system_binds(()), "--proc", "/proc", "--dev", "/dev"]
    try:
        done = subprocess.run([*command, "true"], capture_output=True, text=True, timeout=PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap cannot be run ({error}): {HOW_TO_INSTALL}"
    if done.returncode == 0:
        return None
    return f"bwrap cannot make a sandbox ({done.stderr.strip().removeprefix('bwrap: ')}): {HOW_TO_PERMIT}"


def isolation(*, has_network: bool) -> list[str]:
    """The options for the namespaces, and against ways back to the host."""
    unshared = ("user", "pid", "ipc", "uts", *(() if has_network else ("net",)))
    options = ("--unshare-cgroup-try", "--die-with-parent", "--cap-drop", "ALL", "--hostname", "sandbox")
    return [*(f"--unshare-{name}" for name in unshared), *options, "--uid", UID, "--gid", UID]


def bind(source: str | Path, target: str | Path | None = None, *, option: str = "--ro-bind") -> list[str]:
    return [option, str(source), str(target or source)]


def system_binds(extra: Iterable[str]) -> list[str]:
    """The host's programs and libraries, the configuration that they need, and `extra` parts of /etc."""
    options: list[str] = []
    for name in SYSTEM:
        if os.path.islink(name):
            options += ["--symlink", os.readlink(name), name]
        elif os.path.exists(name):
            options += bind(name)
    for name in (*ETC, *extra):
        options += bind(f"/etc/{name}", option="--ro-bind-try")
    return options


@cache
def shipped_tasks() -> tuple[Path, ...]:
    """Folders with this package's tasks and their answers, in every visible copy of the package.

    An editable installation leaves a copy next to its link, and the base interpreter can have its own.
    """
    prefixes = dict.fromkeys([Path("/usr"), Path("/usr/local"), *(part.parent for part in python_parts())])
    copies = [found for prefix in prefixes for found in prefix.glob(COPIES)]
    packages = [*copies, *(part / PACKAGE.name for part in python_parts()), PACKAGE]
    return tuple({path.parent for package in packages for path in package.glob("**/*.task.yaml")})


def covered(hidden: Iterable[Path], folders: Iterable[Path]) -> list[str]:
    """Options that put empty folders over the `hidden` ones wherever the bound `folders` show them."""
    pairs = itertools.product((path.resolve() for path in hidden if path.is_dir()), folders)
    targets = {
        str(folder / path.relative_to(folder.resolve()))
        for path, folder in pairs
        if path.is_relative_to(folder.resolve())
    }
    return [word for path in sorted(targets) for word in ("--tmpfs", path, "--remount-ro", path)]


def scope(memory: int, pids: int) -> list[str]:
    """The beginning of a command that runs a shell script in a cgroup of its own with these limits."""
    manager = "--system" if os.geteuid() == 0 else "--user"
    limits = (f"-pMemoryMax={memory}", "-pMemorySwapMax=0", f"-pTasksMax={pids}")
    return ["systemd-run", manager, "--scope", "--quiet", "--collect", *limits, "--", "sh", "-c"]


@cache
def can_limit() -> bool:
    """Whether systemd makes cgroups with limits for this user. Tried once in a process."""
    memory, pids = 2**30, 64
    try:
        command = [*scope(memory, pids), SHOW_LIMITS]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_SECONDS)
        return done.stdout.split() == [str(memory), str(pids)]
    except (OSError, subprocess.TimeoutExpired):
        return False


class BubblewrapSandbox:
    """A Sandbox in namespaces. It ends when it is closed or this process ends, even by SIGKILL."""

    name = "bubblewrap"
    workdir = WORKDIR

    def __init__(self, spec: SandboxSpec, settings: SandboxSettings) -> None:
        self.spec = spec
        self.settings = settings
        self._folder = SandboxFolder()
        self._bridge: BridgeProcess | None = None
        self.capabilities = Capabilities(
            # With a network, code inside can reach servers on the host's loopback.
            isolation=not spec.network,
            no_network=True,
            memory=can_limit(),
            pids=can_limit(),
            remark="" if can_limit() else NO_LIMITS,
        )

    @property
    def folder(self) -> Path:
        """The folder on the host that contains what is written inside, until `close`."""
        return self._folder.path

    def open(self) -> SocketStream:
        """Start the bridge inside. Raises InfrastructureError."""
        program = [f"{VENV}/bin/python", "-u", "-c", bridge_source()]
        try:
            self._folder.make(Path(VENV))
            for name, text in ACCOUNTS.items():
                (self.folder / name).write_text(text)
            command = [*self._bwrap(), "--new-session", "--as-pid-1", "--", *program]
            environment = self._environment()
            if can_limit():
                limits = (self.spec.memory or DEFAULT_MEMORY, self.spec.pids or DEFAULT_PIDS)
                command = [*scope(*limits), BWRAP_IN_SCOPE, *command]
                # By these systemd-run finds its manager; they are unset before bwrap runs.
                given = self.settings.environment
                environment |= {name: given[name] for name in BUS_VARIABLES if name in given}
            self._bridge = STARTER.submit(BridgeProcess, command, env=environment).result()
        except OSError as error:
            raise InfrastructureError(f"no bubblewrap sandbox: {error}") from error
        return self._bridge.stream

    def _bwrap(self) -> list[str]:
        """The command up to the program to run. Later binds cover earlier ones."""
        has_network = bool(self.spec.network)
        hidden = [*self.settings.hidden, *shipped_tasks()]
        own = [(self.folder / "tmp", "/tmp"), (self.folder / "work", WORKDIR)]
        own += [(self.folder / "home", HOME), (self.folder / "venv", VENV)]
        return [
            *(shutil.which("bwrap") or "bwrap", *isolation(has_network=has_network)),
            *system_binds(ETC_OF_NETWORK if has_network else ()),
            *covered(hidden, [Path(name) for name in SYSTEM if not os.path.islink(name)]),
            *("--proc", "/proc", "--dev", "/dev", "--dir", "/run"),
            *(word for source, target in own for word in bind(source, target, option="--bind")),
            *("--symlink", "../tmp", "/var/tmp"),
            *(word for name in ACCOUNTS for word in bind(self.folder / name, f"/etc/{name}")),
            *(word for part in python_parts() for word in bind(part)),
            *covered(hidden, python_parts()),  # once more: the binds above can show them again
            *(word for target, source in self._files().items() for word in bind(source, target)),
            *(word for source, target in self.settings.mounts.items() for word in bind(source, target)),
            *("--remount-ro", "/", "--chdir", WORKDIR),  # last: no mount point can be made after it
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

    def _environment(self) -> dict[str, str]:
        files = self._files()
        mounts = map(Path, self.settings.mounts.values())
        seen = [*map(Path, SYSTEM), *(Path("/etc", name) for name in ETC), *python_parts(), *mounts]
        allowed = {
            name: value
            for name, value in allowed_environment(self.settings.environment).items()
            # Leave out paths that do not exist inside, such as the cache of pip.
            if not value.startswith("/") or is_within(Path(value), seen)
        }
        path = self.settings.environment.get("PATH", os.defpath).split(":")
        return {
            **allowed,
            "PATH": ":".join([f"{VENV}/bin", *(entry for entry in path if is_within(Path(entry), seen))]),
            "VIRTUAL_ENV": VENV,
            "HOME": HOME,
            "TMPDIR": "/tmp",
            **(dict.fromkeys(CA_VARIABLES, CA_FILE) if CA_FILE in files else {}),
            **({"PIP_CONFIG_FILE": PIP_FILE} if PIP_FILE in files else {}),
            **self.spec.env,
        }

    def cause_of_death(self) -> str:
        """How the bridge ended. No engine is involved that could fail to answer."""
        return self._bridge.cause_of_death() if self._bridge else "it was never started"

    def keep(self) -> str:
        """Keep the folder, with a script that enters it in the same namespaces."""
        self._folder.keep()
        enter = self.folder / "enter"
        variables = [f"{name}={value}" for name, value in self._environment().items()]
        command = shlex.join(["env", "-i", *variables, *self._bwrap(), "bash"])
        try:
            enter.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            enter.chmod(0o700)
        except OSError as error:
            raise InfrastructureError(f"the sandbox's files cannot be kept: {error}") from error
        return str(enter)

    def close(self) -> None:
        # When the first process of a pid namespace ends, Linux kills all others.
        if self._bridge is not None:
            self._bridge.close()
        self._folder.remove()
