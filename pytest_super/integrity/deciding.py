"""Files that decide what later commands and imports do, most of them outside of the working directory."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.cell import SandboxLostError
from pytest_super.kernel.client import Kernel

# Programs that are compiled: a script in their place is a replacement.
PROGRAMS = r"(?:python[\d.]*|bash|sh|dash|date|time|git)"
SITE = r"/(?:site-packages|dist-packages)"
# Of the standard library, what graders and experiments compute with, and what Python starts with.
LIBRARY = r"(?:(?:json|unittest)/\w+|codecs|io|os|random|runpy|site|statistics|subprocess|types)\.py"
PATHS = {
    "pth": rf"{SITE}/[^/]+\.pth",
    # Where Python looks by itself, and in any folder that PYTHONPATH can name, but not in those of packages.
    "customize": rf"(?:{SITE}|^(?!.*{SITE}/).*)/(?:site|user)customize(?:/__init__)?\.py",
    "hook": r"/\.ipython/profile_\w+/startup/[^/]+\.i?py|^/etc/ld\.so\.preload",
    "start": r"/\.(?:bashrc|bash_profile|bash_login|bash_aliases|profile|zshenv|zshrc|zprofile)"
    r"|^/etc/(?:profile|bash\.bashrc|environment|zsh/\w+|profile\.d/[^/]+)",
    "program": rf"(?:/venv|/\.local|^/usr|^/usr/local|^/opt/\w+|^)/s?bin/{PROGRAMS}",
    "library": rf"^/usr/(?:local/)?lib/python3\.\d+/{LIBRARY}",
}
"""How the paths of deciding files end, by kind."""
DECIDING = re.compile("|".join(f"(?P<{kind}>(?:{path})$)" for kind, path in PATHS.items()))
LIST = ".dist-info/RECORD"
LOOKED_FOR = "|".join([*(f"(?:{path})$" for path in PATHS.values()), rf"{re.escape(LIST)}$"])
# By how many seconds the times of files can be behind the clock.
TICK = 0.01
# How many files are looked at, and how many lists of packages.
MOST_FILES, MOST_LISTS = 10_000, 50
# More changed modules of the library are an upgrade of Python.
UPGRADED = 20
# Bytes of a file that are read, and of the list of a package's files.
HEAD, MOST_LIST = 2**16, 2**22
# How setuptools and virtualenv find packages. The lines of others are in a package's list of files.
FINDERS = re.compile(
    r"import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os\.environ\.get\(var, '\w+'\) == 'local'; "
    r"enabled and __import__\('_distutils_hack'\)(?:\.add_shim\(\))?;?"
    r"|import (__editable___\w+_finder); \1\.install\(\)"
    r"|import _virtualenv"
    r"|import sys; sys\.__plen = len\(sys\.path\)"
    r"|import sys; new=sys\.path\[sys\.__plen:\]; del sys\.path\[sys\.__plen:\]; "
    r"p=getattr\(sys,'__egginsert',0\); sys\.path\[p:p\]=new; sys\.__egginsert = p\+len\(new\)"
)
# The whole code of the file that comes with Ubuntu's Python.
APPORT = "try: import apport_python_hook except ImportError: pass else: apport_python_hook.install()"


@dataclass(frozen=True, kw_only=True)
class DecidingFiles:
    """The beginnings of the files by their paths inside. Those that packages bring are not among them."""

    files: Mapping[str, bytes]
    is_whole: bool
    """Whether the sandbox shows all places that code inside can write to."""


def time_inside(kernel: Kernel) -> float | None:
    """The time by the sandbox's clock; None if nothing can be looked for in it."""
    if kernel.writable is None:
        return None
    with suppress(SandboxLostError, OSError, InfrastructureError):
        # What was written just before is not the agent's.
        time.sleep(2 * TICK)
        return kernel.files.now()
    return None


def deciding_files(kernel: Kernel, since: float) -> DecidingFiles | None:
    """Find files that changed since a time of the sandbox's clock; None if it does not tell.

    The bridge of the sandbox looks for them, which code inside cannot change, as it finds processes.
    """
    writable = kernel.writable
    if writable is None:
        return None
    try:
        found: dict[str, str] = {}
        is_whole = writable.is_whole
        for folder in writable.folders:
            changed = kernel.files.changed(folder, LOOKED_FOR, since=since - TICK, most=MOST_FILES)
            found |= changed.paths
            is_whole = is_whole and changed.is_complete
        files = {path: beginning(kernel, found[path]) for path in chosen(found, kernel.workdir)}
        return DecidingFiles(files=dict(without_packages(files, found, kernel)), is_whole=is_whole)
    except (SandboxLostError, OSError, InfrastructureError):
        return None


def chosen(paths: Iterable[str], workdir: str) -> list[str]:
    """Keep paths that decide something; in the working directory, the modules that Python looks for."""
    kinds = {path: kind for path in paths if (kind := kind_of(path))}
    left_out = {"library"} if list(kinds.values()).count("library") > UPGRADED else set()
    return [
        path
        for path, kind in kinds.items()
        if kind not in left_out and (kind == "customize" or not path.startswith(f"{workdir}/"))
    ]


def beginning(kernel: Kernel, path: str, most: int = HEAD) -> bytes:
    """The first bytes of a file; b"" if it cannot be read."""
    with suppress(OSError):
        return b"".join(kernel.files.read_pieces(path, most))
    return b""


def kind_of(path: str) -> str:
    """Return one of PATHS; "" for a file that decides nothing."""
    found = DECIDING.search(path)
    return found.lastgroup or "" if found else ""


def without_packages(
    files: Mapping[str, bytes], paths: Iterable[str], kernel: Kernel
) -> Iterator[tuple[str, bytes]]:
    """Leave out hooks of Python that are as a package has brought them."""
    hooks = {path for path, data in files.items() if kind_of(path) == "pth" and code_of_pth(data)}
    folders = {posixpath.dirname(path) for path in hooks}
    near = (one for one in paths if one.endswith(LIST))
    lists = [one for one in near if posixpath.dirname(posixpath.dirname(one)) in folders][:MOST_LISTS]
    listed = b"\n".join(beginning(kernel, one, MOST_LIST) for one in lists)
    for path, data in files.items():
        if not (path in hooks and is_listed(path, data, listed)):
            yield path, data


def is_listed(path: str, data: bytes, record: bytes) -> bool:
    """Whether a package's list of files has the file with this content."""
    digest = urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return b"%s,sha256=%s," % (os.fsencode(posixpath.basename(path)), digest) in record


def code_of_pth(data: bytes) -> str:
    """The first line that Python would execute, and that is not one of the known finders."""
    lines = data.decode("utf-8-sig", errors="replace").splitlines()
    code = (line.strip() for line in lines if line.startswith(("import ", "import\t")))
    return next((line for line in code if not FINDERS.fullmatch(line)), "")


def code_of_customize(data: bytes) -> str:
    """The first line of code, unless the whole is that of Ubuntu's own file."""
    lines = [line.strip() for line in data.decode(errors="replace").splitlines()]
    code = [line for line in lines if line and not line.startswith("#")]
    if len(data) >= HEAD and not code:
        return f"no code in its first {HEAD:,} bytes"
    return "" if " ".join(code) == APPORT or not code else code[0]
