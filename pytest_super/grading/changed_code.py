"""The Python files that are graded and that the agent has changed, read next to their originals."""

import tarfile
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pytest_super.errors import InfrastructureError
from pytest_super.functions.acts import Acts
from pytest_super.functions.bounded import acts_of, refuse_too_large
from pytest_super.functions.source import SourceError
from pytest_super.grading.collected import Collected, Files, content, contents, inside
from pytest_super.kernel.client import Kernel
from pytest_super.store.json_lines import disk_errors

# Each takes a process.
MOST_FILES = 20


class Original(NamedTuple):
    """A file before the agent."""

    data: bytes
    """Empty if the agent has made it."""
    targets: Iterable[str] = ()
    """The functions whose bodies the agent has written."""


class ChangedCode(NamedTuple):
    path: str
    acts: Acts | None
    """What it does that its original does not; None if it cannot be read."""
    why: str = ""
    is_new: bool = False
    """Whether the agent has made it."""


def originals_in(kernel: Kernel, collected: Collected, before: Files | None) -> dict[str, Original] | None:
    """Find the originals of collected Python files that the agent made or changed; None if not known.

    `kernel` is that of a sandbox in which nobody has acted, and `before` has its files.
    """
    if before is None:
        return None
    python = (path for path in collected.files if path.endswith(".py"))
    changed = (path for path in python if content(collected.files, path) != content(before, path))
    return {
        path: Original(kernel.files.read(inside(kernel, path)) if path in before else b"")
        for path in islice(changed, MOST_FILES)
    }


def changed_code(archive: Path, originals: Mapping[str, Original]) -> list[ChangedCode]:
    """Raises InfrastructureError."""
    with disk_errors(archive), tarfile.open(archive) as tar:
        entries = {entry.name: entry for entry in tar}
        changed = {path: contents(tar, entries[path]) for path in originals if path in entries}
    return [read_code(path, originals[path], data) for path, data in changed.items()]


def read_code(path: str, original: Original, data: bytes) -> ChangedCode:
    try:
        refuse_too_large(path, len(original.data), len(data))
        acts = acts_of(path, original.data, data, original.targets)
        return ChangedCode(path, acts, is_new=not original.data)
    except (SourceError, InfrastructureError) as error:
        return ChangedCode(path, None, str(error))
