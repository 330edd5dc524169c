"""The host's side of file operations in a sandbox: bytes of any name and size, independent of the kernel."""

from __future__ import annotations

import errno
import json
import os
import queue
import tarfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CHUNK = 2**20
# Default limit of a read: a file in the sandbox can be larger than the host's memory.
READ_LIMIT = 2**28
# Most files that a search lists, and most bytes of its result.
NAMED = 1000
NAMES_LIMIT = 2**25
# A sandbox that does not send the next piece of a file within this time hangs.
ANSWER_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True, slots=True)
class FileEntry:
    """An entry of a folder in the sandbox. `size` in bytes, `modified` in seconds since 1970."""

    name: str
    kind: Literal["file", "folder", "link", "other"]
    size: int
    modified: float


@dataclass(frozen=True, kw_only=True, slots=True)
class FileSearch:
    """The result of a search below a folder."""

    folder: str
    """Its real absolute path."""
    found: list[tuple[str, int]]
    """Relative path and number of matching lines of each file, for at most NAMED files."""
    files: int
    """Number of matching files, including those not listed in `found`."""
    lines: int
    """Number of matching lines in all these files."""
    is_complete: bool
    """False when the search ran out of time."""


class FileChannel:
    """Handles one request at a time; others wait. The reader thread calls `answer` and `end`."""

    def __init__(
        self,
        send_control: Callable[..., None],
        *,
        lost: Callable[[], Exception],
        give_up: Callable[[str], None],
    ) -> None:
        """`lost` makes the exception to raise when the sandbox is gone.

        `give_up` ends a sandbox that does not answer for ANSWER_SECONDS; then `end` is called.
        """
        self._send_control = send_control
        self._lost = lost
        self._give_up = give_up
        self._ids = count(1)
        # The id of the current request, or 0 if it has failed.
        self._number = 0
        self._turn = threading.Lock()
        # Needs no maximum size: the sandbox sends one answer at a time, and each read has a limit.
        self._answers: queue.Queue[tuple[dict[str, Any], bytes] | None] = queue.Queue()

    def answer(self, fields: dict[str, Any], payload: bytes) -> None:
        """Accept an answer from the sandbox; one that belongs to no current request is dropped."""
        if fields.get("id") == self._number:
            self._answers.put((fields, payload))

    def end(self) -> None:
        self._answers.put(None)

    def read(self, path: str, limit: int) -> bytes:
        with self._turn:
            return b"".join(self._pieces("read", path, limit))

    def list(self, path: str) -> list[FileEntry]:
        with self._turn:
            entries = self._value("list", path)
        return [FileEntry(**entry) for entry in entries]

    def resolve(self, path: str) -> str:
        with self._turn:
            return str(self._value("resolve", path, NAMES_LIMIT))

    def search(self, path: str, **asked: Any) -> FileSearch:
        with self._turn:
            result = self._value("search", path, NAMES_LIMIT, most=NAMED, **asked)
        return FileSearch(**{**result, "found": [(name, lines) for name, lines in result["found"]]})

    def write(self, path: str, data: bytes) -> None:
        with self._sending("write", path, size=len(data)) as send:
            for start in range(0, len(data), CHUNK):
                send(data[start : start + CHUNK])

    def upload(self, tree: Path, path: str) -> None:
        with self._sending("upload", path) as send:
            write_archive(tree, send)

    @contextmanager
    def _sending(self, op: str, path: str, **asked: Any) -> Iterator[Callable[[bytes], int]]:
        """A request with data; gives a function that sends a piece when the sandbox asks for it."""

        def send(data: bytes) -> int:
            # After a failure `tarfile` still writes its buffer, for which nobody asks.
            if self._number:
                self._next_answer(path)
                self._send_control("data", data)
            return len(data)

        with self._turn:
            self._ask(op, path, **asked)
            try:
                yield send
                self._next_answer(path)
            except BaseException:
                # Also for Ctrl-C: otherwise the sandbox would wait for the rest, and later requests for it.
                if self._number:
                    self._send_control("end", aborted=True)
                raise
            self._send_control("end", aborted=False)
            self._next_answer(path)

    def _value(self, op: str, path: str, limit: int = READ_LIMIT, **asked: Any) -> Any:
        return json.loads(b"".join(self._pieces(op, path, limit, **asked)))

    def _pieces(self, op: str, path: str, limit: int, **asked: Any) -> Iterator[bytes]:
        """The answer's pieces. Checks `limit` again, because code inside can tamper with the bridge."""
        self._ask(op, path, limit=limit, **asked)
        while True:
            fields, payload = self._next_answer(path)
            if fields["op"] == "done":
                return
            limit -= len(payload)
            if limit < 0:
                # From now on `answer` drops the pieces that still arrive.
                self._number = 0
                raise OSError(errno.EFBIG, "Larger than allowed", path)
            yield payload

    def _ask(self, op: str, path: str, **fields: Any) -> None:
        self._number = next(self._ids)
        self._send_control(op, id=self._number, path=os.fspath(path), **fields)

    def _next_answer(self, path: str) -> tuple[dict[str, Any], bytes]:
        """The next answer to the current request. Raises the matching OSError if the request failed.

        Raises the exception of `lost` when the sandbox is gone or was given up for not answering.
        """
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                answer = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                self._give_up(f"it did not answer a file request for {ANSWER_SECONDS:.0f} seconds")
                # `lost` knows the reason only when the reader thread has reported the end.
                while (answer := self._answers.get()) is not None:
                    pass
            if answer is None:
                # The end is reported once, and later calls need it too.
                self._answers.put(None)
                raise self._lost()
            fields, payload = answer
            # Queued for an earlier request before that one was given up.
            if fields.get("id") != self._number:
                continue
            if fields["op"] == "failed":
                self._number = 0
                raise failure(fields, path)
            return fields, payload


def write_archive(tree: Path, send: Callable[[bytes], int]) -> None:
    file: Any = SimpleNamespace(write=send)
    with tarfile.open(fileobj=file, mode="w|", bufsize=CHUNK) as archive:
        for name in sorted(os.listdir(tree)):
            archive.add(tree / name, arcname=name, filter=anonymous)


def failure(fields: dict[str, Any], path: str) -> OSError:
    """The sandbox's OSError, as if it had been raised on the host."""
    number = fields.get("errno")
    message = str(fields.get("message"))
    return OSError(number, message, path) if isinstance(number, int) else OSError(f"{message}: {path!r}")


def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """The entry without its owner, so that the sandbox's user owns it. None for devices and pipes."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry if entry.isreg() or entry.isdir() or entry.issym() or entry.islnk() else None
