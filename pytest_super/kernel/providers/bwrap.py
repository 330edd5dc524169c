"""How bwrap is started on this machine: the way that isolates most, the limits, the command.

And what of the host's system a sandbox shows, read-only, and what it hides.
"""

import ctypes
import itertools
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pytest_super.kernel.providers.host_environment import PACKAGE, python_parts
from pytest_super.kernel.providers.sandbox_folder import OPEN_FOLDER
from pytest_super.kernel.providers.unprivileged import (
    PRIVATE,
    becoming,
    is_open,
    mounting,
    unused_id,
    why_root_stays,
    within_reach,
)

# Not root, even if pytest runs as root: tar would try to set the owners of files, which takes a capability.
UID = "1000"
PROBE_SECONDS = 20.0
HOW_TO_INSTALL = "install it (the package `bubblewrap` of most distributions)"
HOW_TO_PERMIT = (
    "user namespaces are forbidden here; the sysctls kernel.unprivileged_userns_clone, "
    "user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns, or a container's seccomp "
    "profile, permit them"
)
NEWER = "install bubblewrap 0.8 or newer"
SCOPE_FOLDER = '"/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)"'
SHOW_LIMITS = f"cd {SCOPE_FOLDER} && cat memory.max pids.max"
# The number of the system call keyctl, and its operation that joins a new session keyring.
KEYCTL = {"x86_64": 250, "ppc64le": 271, "s390x": 280}.get(platform.machine(), 219)
JOIN_SESSION_KEYRING = 1
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
# The parts of /etc that programs need, without accounts, private keys or configurations of services.
ETC = (
    *("alternatives", "ca-certificates", "debian_version", "fonts", "inputrc", "ld.so.cache", "ld.so.conf"),
    *("ld.so.conf.d", "locale.alias", "localtime", "magic", "mime.types", "nsswitch.conf", "os-release"),
    *("perl", "pki/ca-trust/extracted", "pki/tls/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf"),
    *("protocols", "python3", "services", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo"),
    *("timezone", "xattr.conf"),
)
ETC_OF_NETWORK = ("resolv.conf", "gai.conf", "host.conf", "pip.conf")
# As Docker has them. Most belong to root, but root can be the user inside.
READ_ONLY = ("bus", "fs", "irq", "sys", "sysrq-trigger")
MASKED = (
    *("acpi", "asound", "interrupts", "kcore", "keys", "latency_stats", "sched_debug", "scsi", "timer_list"),
    "timer_stats",
)
COPIES = "lib*/python3*/*-packages/pytest_super"


def bind(source: str | Path, target: str | Path | None = None, *, option: str = "--ro-bind") -> list[str]:
    return [option, str(source), str(target or source)]


@cache
def system_binds() -> tuple[str, ...]:
    """The host's programs and libraries."""
    options: list[str] = []
    for name in SYSTEM:
        if os.path.islink(name):
            options += ["--symlink", os.readlink(name), name]
        elif os.path.exists(name):
            options += bind(name)
    return tuple(options)


def etc_folders(names: Iterable[str]) -> list[str]:
    return [word for name in names if os.path.isdir(f"/etc/{name}") for word in bind(f"/etc/{name}")]


def copy_etc_files(names: Iterable[str], folder: Path) -> None:
    """Copy those that all users can read. A mount for each would take bwrap longer. Raises OSError."""
    for name in names:
        source = Path("/etc", name)
        if source.is_file() and is_open(source):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / name)


@cache
def proc_options() -> tuple[str, ...]:
    """A /proc of the sandbox's own, in which nothing acts on the host's kernel or tells its secrets.

    bwrap leaves /proc/sys writable if the user inside is root outside, who needs no capability there.
    """
    options = ["--proc", "/proc"]
    for path in (f"/proc/{name}" for name in READ_ONLY if os.path.exists(f"/proc/{name}")):
        options += bind(path)
    for path in (f"/proc/{name}" for name in MASKED):
        if os.path.isdir(path):
            options += emptied(path)
        elif os.path.exists(path):
            options += bind("/dev/null", path)
    return tuple(options)


def emptied(path: str) -> list[str]:
    return ["--tmpfs", path, "--remount-ro", path]


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
    real = {folder: folder.resolve() for folder in folders}
    targets = {
        str(folder / path.relative_to(real[folder]))
        for path, folder in itertools.product((path.resolve() for path in hidden if path.is_dir()), real)
        if path.is_relative_to(real[folder])
    }
    return [word for path in sorted(targets) for word in emptied(path)]


class Way(NamedTuple):
    """How bwrap is started, as far as this depends on the machine."""

    own_user: bool
    """Root becomes an unprivileged user first."""
    closed: bool
    """Code inside can make no further user namespaces, which takes bwrap 0.8."""


@cache
def way() -> Way:
    """The one that isolates most among those that work here, or the last one."""
    of_user = (True, False) if os.geteuid() == 0 and not why_root_stays() else (False,)
    ways = [Way(own_user, closed) for own_user in of_user for closed in (True, False)]
    return next((one for one in ways if refusal(one) is None), ways[-1])


@cache
def refusal(tried: Way) -> str | None:
    """Why no sandbox is made in this way; None if one is. Tried once in a process."""
    options = [*isolation(tried, has_network=False), *system_binds(), *proc_options(), "--dev", "/dev"]
    options += [word for part in python_parts() for word in bind(part)]
    try:
        with TemporaryDirectory(prefix="super-probe-") as folder:
            os.chmod(folder, OPEN_FOLDER)
            user = unused_id() if tried.own_user else None
            command = [*launch(options, folder=Path(folder), user=user), "true"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stderr.strip().removeprefix("bwrap: ") if done.returncode else None


@cache
def why_unusable() -> str | None:
    """Why bwrap cannot be used, for a person; None if it can."""
    if shutil.which("bwrap") is None:
        return f"the program bwrap is missing: {HOW_TO_INSTALL}"
    if (problem := refusal(way())) is None:
        return None
    return f"bwrap cannot make a sandbox ({problem}): {HOW_TO_PERMIT}"


@cache
def why_not_isolated() -> str | None:
    """Why the sandboxes of this machine do not isolate, for a person; None if they do, or there are none."""
    if why_unusable() is not None or (way().closed and (way().own_user or os.geteuid() != 0)):
        return None
    if os.geteuid() == 0 and not way().own_user:
        problem = why_root_stays() or refusal(Way(own_user=True, closed=False))
        return f"bubblewrap does not isolate root ({problem}): run pytest as another user"
    return f"bubblewrap cannot close user namespaces here ({refusal(way()._replace(closed=True))}): {NEWER}"


def isolation(chosen: Way, *, has_network: bool) -> list[str]:
    """The options for the namespaces, and against ways back to the host."""
    unshared = ("user", "pid", "ipc", "uts", *(() if has_network else ("net",)))
    options = ("--unshare-cgroup-try", "--die-with-parent", "--cap-drop", "ALL", "--hostname", "sandbox")
    closing = ("--disable-userns",) if chosen.closed else ()
    return [*(f"--unshare-{name}" for name in unshared), *closing, *options, "--uid", UID, "--gid", UID]


def launch(
    options: list[str], *, folder: Path, user: int | None, limits: tuple[int, int] | None = None
) -> list[str]:
    """The command that runs bwrap: in a cgroup with `limits`, and as `user` if root has to become one.

    All its programs replace each other, so the process that is started is bwrap's own. `folder` gets mount
    points. Raises OSError.
    """
    bwrap, mounts = shutil.which("bwrap") or "bwrap", dict[Path, Path]()
    if user is not None:
        options, mounts = within_reach(options, folder / "host")
    start = [*(becoming(user) if user is not None else ()), bwrap]
    # The bridge reads from the cgroup whether memory ran out.
    cgroup = f"--ro-bind {SCOPE_FOLDER} /sys/fs/cgroup" if limits else ""
    script = f'{mounting(mounts)}exec {shlex.join(start)} {cgroup} "$@"'
    before = [*(scope(*limits) if limits else ()), *(PRIVATE if mounts else ())]
    if not mounts and not limits:
        return [*start, *options]
    return [*before, "sh", "-c", script, "sh", *options]


def leave_keys() -> None:
    """Give this thread, and what it starts, an empty session keyring. Namespaces do not hide the other one.

    Where the system call is refused, code inside cannot use it either.
    """
    ctypes.CDLL(None).syscall(KEYCTL, JOIN_SESSION_KEYRING, None)


def scope(memory: int, pids: int) -> list[str]:
    """The beginning of a command that runs another one in a cgroup of its own with these limits."""
    manager = "--system" if os.geteuid() == 0 else "--user"
    limits = (f"-pMemoryMax={memory}", "-pMemorySwapMax=0", f"-pTasksMax={pids}")
    return ["systemd-run", manager, "--scope", "--quiet", "--collect", *limits, "--"]


@cache
def can_limit() -> bool:
    """Whether systemd makes cgroups with limits for this user. Tried once in a process."""
    memory, pids = 2**30, 64
    try:
        command = [*scope(memory, pids), "sh", "-c", SHOW_LIMITS]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_SECONDS)
        return done.stdout.split() == [str(memory), str(pids)]
    except (OSError, subprocess.TimeoutExpired):
        return False
