"""Files that decide what later commands and imports do, most of them outside of the working directory."""

from __future__ import annotations

import hashlib
import posixpath
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_super.kernel.client import Kernel
    from pytest_super.kernel.sandbox import WrittenFiles

# Of programs that are never scripts where they were not replaced.
PROGRAMS = r"(?:python[\d.]*|bash|sh|dash|date|time|env|git)"
SITE = r"/(?:site-packages|dist-packages)"
NOT_LIBRARY = r"(?!(?:site|dist)-packages/|(?:site|user)customize|.*__pycache__/)"
PATHS = {
    "pth": rf"{SITE}/[^/]+\.pth",
    # Where Python looks by itself, and in any folder that PYTHONPATH can name, but not in those of packages.
    "customize": rf"(?:{SITE}|^(?!.*{SITE}/).*)/(?:site|user)customize\.py",
    "hook": r"/\.ipython/profile_\w+/startup/[^/]+\.i?py|^/etc/ld\.so\.preload",
    "start": r"/\.(?:bashrc|bash_profile|bash_login|bash_aliases|profile|zshenv|zshrc|zprofile)"
    r"|^/etc/(?:profile|bash\.bashrc|environment|zsh/\w+|profile\.d/[^/]+)",
    "program": rf"(?:/venv|/\.local|^/usr|^/usr/local|^/opt/\w+|^)/s?bin/{PROGRAMS}",
    "library": rf"^/usr/(?:local/)?lib/python3\.\d+/{NOT_LIBRARY}.+\.py",
}
"""How the paths of deciding files end, by kind."""
DECIDING = re.compile("|".join(f"(?P<{kind}>(?:{path})$)" for kind, path in PATHS.items()))
# More changed modules of the library are an upgrade of Python.
UPGRADED = 20
# Of one trial; an upgrade of all packages changes more. Bytes of each, and of the list of a package's files.
MOST_FILES, HEAD, MOST_LIST = 200, 2**16, 2**24
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

    def since(self, before: DecidingFiles) -> DecidingFiles:
        """Those that have been made or changed."""
        changed = {path: data for path, data in self.files.items() if before.files.get(path) != data}
        return DecidingFiles(files=changed, is_whole=self.is_whole)


def files_before(kernel: Kernel, *, has_prefix: bool) -> DecidingFiles | None:
    """Those that are there before the agent acts."""
    written = kernel.written_files
    if written is None or has_prefix or not written.begins_empty:
        return deciding_files(kernel)
    # Some engines compare the whole image with the container, which takes seconds.
    return DecidingFiles(files={}, is_whole=written.is_whole)


def deciding_files(kernel: Kernel) -> DecidingFiles | None:
    """Those that code inside may have written; None if the sandbox or its engine does not tell."""
    written = kernel.written_files
    if written is None:
        return None
    try:
        inside = f"{kernel.workdir}/"
        paths = [
            path for path in written.paths() if not path.startswith(inside) or kind_of(path) == "customize"
        ]
        files = {path: written.read(path, HEAD) for path in chosen(paths)}
        return DecidingFiles(files=dict(without_packages(files, paths, written)), is_whole=written.is_whole)
    except InfrastructureError:
        return None


def chosen(paths: Iterable[str]) -> list[str]:
    kinds = {path: kind for path in paths if (kind := kind_of(path))}
    is_upgraded = list(kinds.values()).count("library") > UPGRADED
    return [path for path, kind in kinds.items() if kind != "library" or not is_upgraded][:MOST_FILES]


def kind_of(path: str) -> str:
    """One of PATHS; "" for a file that decides nothing."""
    found = DECIDING.search(path)
    return found.lastgroup or "" if found else ""


def without_packages(
    files: Mapping[str, bytes], paths: Iterable[str], written: WrittenFiles
) -> Iterator[tuple[str, bytes]]:
    """Without the hooks of Python that are as a package has brought them."""
    lists = [path for path in paths if path.endswith(".dist-info/RECORD")]
    for path, data in files.items():
        near = [one for one in lists if posixpath.dirname(posixpath.dirname(one)) == posixpath.dirname(path)]
        is_hook = kind_of(path) == "pth" and bool(code_of_pth(data))
        if not (is_hook and any(is_listed(path, data, written.read(one, MOST_LIST)) for one in near)):
            yield path, data


def is_listed(path: str, data: bytes, record: bytes) -> bool:
    """Whether a package's list of files has the file with this content."""
    digest = urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return b"%s,sha256=%s," % (posixpath.basename(path).encode(), digest) in record


def code_of_pth(data: bytes) -> str:
    """The first line that Python would execute, and that is not one of the known finders."""
    lines = data.decode(errors="replace").splitlines()
    code = (line.strip() for line in lines if line.startswith(("import ", "import\t")))
    return next((line for line in code if not FINDERS.fullmatch(line)), "")


def code_of_customize(data: bytes) -> str:
    """The first line of code, unless the whole is that of Ubuntu's own file."""
    lines = [line.strip() for line in data.decode(errors="replace").splitlines()]
    code = [line for line in lines if line and not line.startswith("#")]
    return "" if " ".join(code) == APPORT or not code else code[0]
