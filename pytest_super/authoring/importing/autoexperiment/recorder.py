"""Records what Python programs need and do not find: files, modules, programs, and hosts of a network.

A `.pth` file among the packages of a sandbox makes every Python there import it from 3.8 on. It acts if
VARIABLE names a file, which then gets a line `KIND<tab>NAME` for each.
"""

from __future__ import annotations

import os
import sys

# Programs must not find `typing` imported.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARIABLE = "SUPER_RECORDER_LOG"
LOG = os.environ.get(VARIABLE, "")
# Audit events come before the call. That of `os.open` cannot be told from others with a relative path.
FOLDERS = ("os.listdir", "os.scandir", "os.chdir")
HOSTS = ("socket.getaddrinfo", "socket.gethostbyname")
NEAR = ("", "localhost", "0.0.0.0", "::", "::1", os.uname().nodename)
SYSTEM = tuple(
    os.path.join(folder, "")
    for folder in (sys.prefix, sys.base_prefix, "/usr", "/lib", "/etc", "/proc", "/sys", "/dev", "/run")
)
# Python looks for these at each start.
CUSTOM = ("sitecustomize", "usercustomize")
PACKAGES = ("/site-packages", "/dist-packages")

recorded: set[tuple[str, str]] = set()


def record(kind: str, name: str) -> None:
    if (kind, name) in recorded:
        return
    recorded.add((kind, name))
    line = "{}\t{}\n".format(kind, name.replace("\n", "?"))
    log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(log, line.encode("utf-8", "backslashreplace"))
    os.close(log)


def is_of_system(path: str) -> bool:
    """Whether it belongs to the system, to Python or to a package, and not to the command."""
    return path.startswith(SYSTEM) or any(part in path for part in PACKAGES)


def is_probed(path: str) -> bool:
    """Whether programs look for it without need."""
    return (
        is_of_system(path)
        or path in sys.path
        # Caches and settings.
        or "/." in path
        # A traceback looks for Cython's sources.
        or path.endswith((".pyc", "__pycache__", ".pyx", ".pxi"))
        # Code without a file, such as `<string>` in a traceback.
        or os.path.basename(path).startswith("<")
    )


def look_for_path(kind: str, name: str) -> None:
    path = os.path.abspath(name)
    if not os.path.exists(path) and not is_probed(path):
        record(kind, path)


def look_for_program(name: str, folder: Any, environment: Any) -> None:
    if "/" in name:
        look_for_path("programs", os.path.join(os.fsdecode(folder or ""), name))
    elif not any(os.path.exists(os.path.join(one, name)) for one in os.get_exec_path(environment)):
        record("programs", name)


def look(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        path, mode = arguments[:2]
        if isinstance(mode, str) and mode[0] == "r" and not isinstance(path, int):
            look_for_path("files", os.fsdecode(path))
    elif event in FOLDERS:
        if arguments[0] is not None and not isinstance(arguments[0], int):
            look_for_path("files", os.fsdecode(arguments[0]))
    elif event in HOSTS:
        host = os.fsdecode(arguments[0] or "")
        if host not in NEAR and not host.startswith("127."):
            record("the network", host)
    elif event == "subprocess.Popen":
        look_for_program(os.fsdecode(arguments[0]), *arguments[2:4])


def hook(event: str, arguments: tuple[Any, ...]) -> None:
    # An exception here would become one of the program.
    try:  # noqa: SIM105
        look(event, arguments)
    except Exception:
        pass


class LastFinder:
    """Is asked for a module that no finder before it has found."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        later = sys.meta_path[sys.meta_path.index(self) + 1 :]
        if any(finder.find_spec(name, path, target) for finder in later):
            return
        if name not in CUSTOM and is_asked_by_command():
            record("modules", name)


def is_asked_by_command() -> bool:
    """Whether the code that imports is of no package: those try many modules that they can do without."""
    frame: Any = sys._getframe(2)
    while frame is not None and is_of_importing(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is None or not is_of_system(os.path.abspath(frame.f_code.co_filename))


def is_of_importing(file: str) -> bool:
    return file.startswith("<frozen ") or file.endswith("importlib/__init__.py")


if LOG:
    sys.meta_path.append(LastFinder())
    sys.addaudithook(hook)
