"""What a kernel is, as far as it can be told without changing it: the same in two kernels that are alike."""

from __future__ import annotations

import ast
import hashlib
import json
from typing import TYPE_CHECKING, Any

from pytest_super.errors import InfrastructureError

if TYPE_CHECKING:
    from pytest_super.kernel.client import Kernel

# Runs inside, with whatever Python (3.8 or newer) is there.
SOURCE = r"""
import json, os, sys

# Of this kernel alone, or of the way in which shell lines are run.
OWN_VARIABLES = ("JPY_PARENT_PID", "IPYTHONDIR")
OWN_MODULES = ("pexpect", "ptyprocess")
OWN_NAMES = ("In", "Out", "get_ipython", "exit", "quit", "open")

def text_of(kind):
    return "%s.%s" % (kind.__module__, kind.__qualname__)

def stamp(module):
    try:
        found = os.stat(module.__file__)
    except (AttributeError, OSError, TypeError, ValueError):
        return ""
    return "%d %d" % (found.st_mtime_ns, found.st_size)

def processes():
    found = []
    for number in os.listdir("/proc"):
        if number.isdigit():
            try:
                with open("/proc/%s/stat" % number, "rb") as file:
                    name, _, rest = file.read().rpartition(b")")
            except OSError:
                continue
            if rest.split()[0] != b"Z":
                found.append(name.partition(b"(")[2].decode("utf-8", "replace"))
    return sorted(found)

def state(names):
    ours = os.environ.get("IPYTHONDIR") or "/nowhere"
    known = getattr(sys, "stdlib_module_names", ())
    tops = {name.partition(".")[0] for name in list(sys.modules)}
    return json.dumps({
        "working directory": os.getcwd(),
        "environment": {key: value for key, value in os.environ.items() if key not in OWN_VARIABLES},
        "path": [str(entry) for entry in sys.path if not str(entry).startswith(ours)],
        "finders": [text_of(one if isinstance(one, type) else type(one)) for one in sys.meta_path],
        "packages": sorted(tops.difference(known, OWN_MODULES)),
        "names": {
            name: text_of(type(value))
            for name, value in list(names.items())
            if not name.startswith("_") and name not in OWN_NAMES
        },
        "processes": processes(),
        "modules": {name: stamp(module) for name, module in list(sys.modules.items())},
    })
"""
EXPRESSION = f"(lambda scope: (exec({SOURCE!r}, scope), scope['state'](get_ipython().user_ns))[1])({{}})"

State = dict[str, Any]
MODULES, PROCESSES = "modules", "processes"


def state_of(kernel: Kernel) -> State:
    """Raises InfrastructureError: code inside can have broken what tells it."""
    try:
        state = json.loads(ast.literal_eval(kernel.evaluate(EXPRESSION)))
    except (ValueError, SyntaxError, TypeError, RecursionError) as error:
        raise InfrastructureError(f"the kernel does not tell its state: {error}") from None
    if not isinstance(state, dict):
        raise InfrastructureError("the kernel does not tell its state")
    return state


def digests(state: State) -> dict[str, str]:
    """Of all that must be the same in another kernel; when modules were loaded plays no part."""
    parts = {part: json.dumps(value, sort_keys=True) for part, value in state.items() if part != MODULES}
    return {part: hashlib.sha256(text.encode()).hexdigest()[:16] for part, text in parts.items()}


def difference(some: dict[str, str], others: dict[str, str]) -> str:
    """The parts in which digests differ; empty when there are none."""
    return ", ".join(
        sorted(part for part in some.keys() | others.keys() if some.get(part) != others.get(part))
    )


def trouble(before: State, after: State) -> str:
    """Why no new kernel would be like one in which steps were run; empty when nothing speaks against it.

    Processes end with their sandbox; and of a module whose file was overwritten, what is loaded here is not
    what would be loaded there.
    """
    if before.get(PROCESSES) != after.get(PROCESSES):
        return "it leaves processes running"
    later = after.get(MODULES, {})
    stamps = before.get(MODULES, {}).items()
    overwritten = sorted(name for name, stamp in stamps if later.get(name, stamp) != stamp)
    return f"it overwrites modules that are loaded: {', '.join(overwritten[:5])}" if overwritten else ""
