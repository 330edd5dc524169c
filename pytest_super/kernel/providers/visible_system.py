"""What of the host's system a bubblewrap sandbox shows, read-only, and what it hides."""

from __future__ import annotations

import itertools
import os
import shutil
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.kernel.providers.host_environment import PACKAGE, python_parts
from pytest_super.kernel.providers.unprivileged import is_open

if TYPE_CHECKING:
    from collections.abc import Iterable

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
