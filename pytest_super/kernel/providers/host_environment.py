"""What a sandbox without an image uses of the host: Python, packages, a few variables, pip's settings."""

import os
import re
import site
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pytest_super.kernel.sandbox import FIXED_ENVIRONMENT

ALLOWED = re.compile(
    r"PATH|TERM|LD_LIBRARY_PATH|SSL_\w+|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|GIT_SSL_CAINFO"
    r"|PIP_\w+|UV_\w+|(?i:https?|all|no)_proxy|(?:OMP|MKL|OPENBLAS)_NUM_THREADS|CUDA_VISIBLE_DEVICES"
)
# Variables that let an installation bypass the fresh environment, or that contain secrets.
REFUSED = re.compile(
    r"PIP_(?:TARGET|PREFIX|ROOT|PYTHON|USER|SRC|LOG|REPORT)"
    r"|UV_(?:PYTHON|PROJECT|TARGET|PREFIX|PROJECT_ENVIRONMENT|SYSTEM_PYTHON|PUBLISH_\w+)"
)
# Parts of an interpreter's prefix. Not all of it: after `python -m venv .` the prefix is the project itself.
PARTS_OF_PREFIX = ("bin", "include", "lib", "lib64", "pyvenv.cfg", "share", "ssl")
PACKAGE = Path(__file__).parents[2]
# The variables that tell pip, requests, curl and git which certificates to trust.
CA_VARIABLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO")


def allowed_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that code inside can see. Keys such as OPENAI_API_KEY are not among them."""
    return FIXED_ENVIRONMENT | {
        name: value
        for name, value in environment.items()
        if ALLOWED.fullmatch(name) and not REFUSED.fullmatch(name)
    }


def trusted_certificates(environment: Mapping[str, str]) -> Path | None:
    """The file of trusted certificates (PEM) that this machine's variables name, if it exists."""
    named = (environment.get(name) for name in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"))
    files = (Path(path).absolute() for path in named if path)
    return next((file for file in files if file.is_file()), None)


def pip_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The user's own pip configuration and cache, which pip would look for under HOME.

    The cache is shared on purpose, so that each wheel is fetched once and not in every trial.
    """
    home = Path(environment.get("HOME") or os.path.expanduser("~"))
    configured = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    files = [path for path in (configured / "pip/pip.conf", home / ".pip/pip.conf") if path.is_file()]
    cache = Path(environment.get("XDG_CACHE_HOME") or home / ".cache") / "pip"
    settings = {"PIP_CACHE_DIR": str(cache), **({"PIP_CONFIG_FILE": str(files[0])} if files else {})}
    return {name: value for name, value in settings.items() if name not in environment}


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """A Python with its packages, on this machine or in an image."""

    executable: str
    """The real path, also from within a virtual environment."""
    library: str
    """The name of its folders, such as `python3.11`."""
    packages: Sequence[str]
    """Folders with packages."""


def this_interpreter() -> Interpreter:
    folders = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    library = os.path.basename(os.path.dirname(os.__file__))
    return Interpreter(executable=os.path.realpath(sys.executable), library=library, packages=folders)


def make_environment(
    folder: Path, seen_as: Path | None = None, interpreter: Interpreter | None = None
) -> None:
    """Make a virtual environment that sees the packages of the interpreter, by default the running one.

    `seen_as` is the path at which it will be used, if not `folder`. Raises OSError.

    Not by `venv`, which takes longer. In a virtual environment it also makes one that sees the packages of
    the base interpreter instead of the running environment's.
    """
    base = interpreter or this_interpreter()
    binaries, packages = folder / "bin", folder / "lib" / base.library / "site-packages"
    for path in (binaries, packages):
        path.mkdir(parents=True)
    python = binaries / base.library
    python.symlink_to(base.executable)
    for name in ("python", "python3"):
        (binaries / name).symlink_to(python.name)
    # The packages come by `parent.pth`. With `true` those of the base interpreter would be seen too.
    home = os.path.dirname(base.executable)
    (folder / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n")
    # The folders' own .pth files add further ones.
    lines = (f"import site; site.addsitedir({parent!r})\n" for parent in base.packages)
    (packages / "parent.pth").write_text("".join(lines))
    for name in ("pip", "pip3", base.library.replace("python", "pip")):
        # A shell script, because the path of the interpreter can be too long for a `#!` line.
        script = binaries / name
        script.write_text(f"#!/bin/sh\nexec '{seen_as or folder}/bin/python' -m pip \"$@\"\n")
        script.chmod(0o755)


@cache
def python_parts() -> tuple[Path, ...]:
    """Folders and files of the running interpreter and its packages, none within another.

    They include our own package if it is installed in editable mode, because pytest in a sandbox imports the
    plugins of all visible packages.
    """
    prefixes = {Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)}
    parts = [prefix / part for prefix in sorted(prefixes) for part in PARTS_OF_PREFIX]
    parts += map(Path, site.getsitepackages())
    if site.ENABLE_USER_SITE:
        parts.append(Path(site.getusersitepackages()))
    found: list[Path] = []
    for part in (*parts, PACKAGE):
        if part.exists() and not is_within(part, found):
            found.append(part)
    return tuple(found)


def is_within(path: Path, folders: Iterable[Path]) -> bool:
    return not {path, *path.parents}.isdisjoint(folders)
