"""What a kernel is, told by itself. Delivered into the sandbox as text; Python 3.8 or newer is there."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

# Of this kernel alone, or of the way in which shell lines are run.
OWN_VARIABLES = ("JPY_PARENT_PID", "IPYTHONDIR")
OWN_MODULES = ("pexpect", "ptyprocess")
OWN_NAMES = ("In", "Out", "get_ipython", "exit", "quit", "open")
# What lies there is not saved.
ELSEWHERE = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/dev/shm")


def state(names: dict[str, Any]) -> str:
    """As JSON, without changing any of it; `names` are those of the cells."""
    return json.dumps({
        "working directory": os.getcwd(),
        "environment": {key: value for key, value in os.environ.items() if key not in OWN_VARIABLES},
        "path": own_path(),
        "finders": [text_of(one if isinstance(one, type) else type(one)) for one in sys.meta_path],
        "packages": packages(),
        "names": {name: text_of(type(value)) for name, value in list(names.items()) if is_bound(name)},
        "processes": processes(),
        "exit code": names.get("_exit_code"),
        "modules": {name: stamp(file_of(module)) for name, module in list(sys.modules.items())},
        "elsewhere": elsewhere(),
    })  # fmt: skip


def is_bound(name: str) -> bool:
    return not name.startswith("_") and name not in OWN_NAMES


def text_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def own_path() -> list[str]:
    ours = os.environ.get("IPYTHONDIR") or "/nowhere"
    return [str(entry) for entry in sys.path if not str(entry).startswith(ours)]


def packages() -> list[str]:
    tops = {name.partition(".")[0] for name in list(sys.modules)}
    return sorted(tops.difference(getattr(sys, "stdlib_module_names", ()), OWN_MODULES))


def file_of(module: Any) -> Any:
    try:
        return module.__file__
    except Exception:
        return None


def stamp(path: Any) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except (OSError, TypeError, ValueError):
        return 0, 0
    return found.st_mtime_ns, found.st_size


def processes() -> list[str]:
    """The names of those that live."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/stat", "rb") as file:
                name, _, rest = file.read().rpartition(b")")
        except OSError:
            continue
        if rest.split()[0] != b"Z":
            found.append(name.partition(b"(")[2].decode("utf-8", "replace"))
    return sorted(found)


def elsewhere() -> list[Any]:
    found: list[str] = []
    for place in ELSEWHERE:
        for folder, folders, files in os.walk(place):
            # The kernel's own.
            folders[:] = [name for name in folders if not name.startswith(".super-")]
            found += [os.path.join(folder, name) for name in [*folders, *files]]
        if not os.path.isdir(place):
            found.append(place)
    return sorted([path, *stamp(path)] for path in found)


def skip(shell: Any, source: str) -> None:
    """Let a cell count that is not run."""
    shell.history_manager.store_inputs(shell.execution_count, source)
    shell.execution_count += 1


def set_exit_code(shell: Any, code: object) -> None:
    if code is not None:
        shell.user_ns["_exit_code"] = code
