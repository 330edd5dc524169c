"""Runs in a kernel and reports facts about that kernel. Sent as source text; needs Python 3.8 or newer."""

import hashlib
import json
import os
import sys
from typing import Any

# Variables of this kernel alone.
OWN_VARIABLES = ("JPY_PARENT_PID", "IPYTHONDIR")
# These files, and those in this folder, are not saved.
UNSAVED_FILES = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")
UNSAVED_FOLDER = "/dev/shm"


def state() -> dict[str, Any]:
    """The facts. Changes nothing in the kernel."""
    return {"kernel": digest(), "processes": processes(), "unsaved": unsaved_files()}


def digest() -> str:
    """A digest of what shell steps can change for Python: folder, environment, where it finds modules."""
    folder = os.environ.get("IPYTHONDIR") or "/nowhere"
    environment = {key: value for key, value in os.environ.items() if key not in OWN_VARIABLES}
    # IPython before 8.0 puts its folder on the path, under a name that is random in each kernel.
    path = [str(entry) for entry in sys.path if not str(entry).startswith(folder)]
    # Names and not `repr`, which contains addresses.
    kinds = [one if isinstance(one, type) else type(one) for one in sys.meta_path]
    finders = [f"{kind.__module__}.{kind.__qualname__}" for kind in kinds]
    facts = json.dumps([os.getcwd(), environment, path, finders], sort_keys=True)
    return hashlib.sha256(facts.encode()).hexdigest()


def processes() -> list[str]:
    """The names of the living processes."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/stat", "rb") as file:
                name, _, rest = file.read().rpartition(b")")
        except OSError:
            continue
        # What the engine runs inside, such as our measurement of the disk, has no parent there.
        status, parent = rest.split()[:2]
        if status != b"Z" and parent != b"0":
            found.append(name.partition(b"(")[2].decode("utf-8", "replace"))
    return sorted(found)


def unsaved_files() -> list[Any]:
    """The files that are not saved with their times and sizes."""
    found = list(UNSAVED_FILES)
    for folder, folders, files in os.walk(UNSAVED_FOLDER):
        # The kernel's own files.
        folders[:] = [name for name in folders if not name.startswith(".super-")]
        found += [os.path.join(folder, name) for name in [*folders, *files]]
    return sorted([path, *stamp(path)] for path in found)


def stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
