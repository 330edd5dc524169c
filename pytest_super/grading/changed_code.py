"""The Python files that are graded and that the agent has changed, read next to their originals."""

import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_super.functions.acts import Acts
from pytest_super.functions.bounded import acts_of
from pytest_super.functions.source import SourceError
from pytest_super.grading.collected import Collected, Files, content, contents, inside
from pytest_super.kernel.client import Kernel
from pytest_super.store.json_lines import disk_errors

# Bytes of one file, besides twice the size of its original, bytes of all, and how many there are.
ROOM, MOST_BYTES, MOST_FILES = 2**20, 2**24, 500


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
    # A file that the agent only copied or moved has nothing new.
    known = {content(before, path) for path in before}
    changed = [path for path in python if content(collected.files, path) not in known]
    # Of the others nothing is read.
    originals = {path for path in changed[:MOST_FILES] if path in before}
    return {
        path: Original(kernel.files.read(inside(kernel, path)) if path in originals else b"")
        for path in changed
    }


def changed_code(archive: Path, originals: Mapping[str, Original]) -> list[ChangedCode]:
    """Raises InfrastructureError."""
    files: list[dict[str, Any]] = []
    found: list[ChangedCode] = []
    with disk_errors(archive), tarfile.open(archive) as tar:
        entries = {entry.name: entry for entry in tar}
        for path in filter(entries.__contains__, originals):
            data, targets = originals[path]
            if why := beyond_limits(entries[path].size, len(data), [len(one["changed"]) for one in files]):
                found.append(ChangedCode(path, None, f"{path}: it {why}"))
            else:
                code = {"original": data, "changed": contents(tar, entries[path])}
                files.append({"name": path, "targets": [*targets], **code})
    for file, read in zip(files, acts_of(files), strict=True):
        acts, why = (None, str(read)) if isinstance(read, SourceError) else (read, "")
        found.append(ChangedCode(file["name"], acts, why, is_new=not file["original"]))
    return found


def beyond_limits(size: int, original: int, others: Sequence[int]) -> str:
    """Why a file of this size is not read, after others of these sizes; "" if it is."""
    if len(others) == MOST_FILES or sum(others) > MOST_BYTES:
        return f"is behind {MOST_FILES} changed files, or {MOST_BYTES:,} bytes of them"
    if size > (most := 2 * original + ROOM):
        return f"has {size:,} bytes, more than {most:,}"
    return ""
