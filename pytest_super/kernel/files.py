"""The host's side of file operations in a sandbox: bytes of any name and size, independent of the kernel."""

from __future__ import annotations

import errno
import os
import queue
import tarfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

from pytest_super.kernel.incoming import CHUNK, file_answer
from pytest_super.kernel.schema import Misfit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# Default limit of a read: a file in the sandbox can be larger than the host's memory.
READ_LIMIT = 2**28
# Bytes of a large file that are in the host's memory at a time.
PIECE = 4 * CHUNK
# Most files that a search lists, and most bytes of its result.
NAMED = 1000
NAMES_LIMIT = 2**25
# The changes of files that are told, the bytes that are read of each, and how long looking for them can take.
# Nobody is charged for it.
MOST_CHANGES = 200
LARGEST_CHANGE = 2**20
CHANGES_SECONDS = 0.5
# Most files whose digests are listed.
DIGESTED = 50_000
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


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedFiles:
    """Files that have changed since a time."""

    paths: dict[str, str]
    """Their paths and the real ones, which are others for links."""
    is_complete: bool
    """False when there were more, or looking took too long."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileDigest:
    """A regular file in the sandbox, found below a folder. `size` in bytes."""

    name: str
    """Its path relative to the folder; "" if it was asked for itself."""
    is_executable: bool
    size: int
    sha256: str
    """ "" for a file of more than READ_LIMIT bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Digests:
    """The regular files at or below a path, without those that cannot be read."""

    files: list[FileDigest]
    is_complete: bool
    """False when there were more than DIGESTED files, or reading them took too long."""


class FileRequest:
    """A request and what has arrived for it, which is never more than was asked for."""

    def __init__(self, number: int, limit: int | None) -> None:
        """The answer can have at most `limit` bytes. With None we send the data, not the sandbox."""
        self.number = number
        self._limit = limit
        # Whether the sandbox can ask for a piece: once for each piece that we send.
        self.expects_more = limit is None
        self.is_over = False
        self.answers: queue.Queue[tuple[str, dict[str, Any], bytes] | None] = queue.Queue()

    def accept(self, op: str, fields: dict[str, Any], payload: bytes) -> bool:
        """Whether the frame answers the request. The first that says or causes its end is the last."""
        if self.is_over or (op == "more" and not self.expects_more):
            return False
        if op == "data":
            if self._limit is None or not payload:
                return False
            self._limit -= len(payload)
            if self._limit < 0:
                # The bridge checks the limit too, but code inside can replace it.
                op, fields = "failed", {"errno": errno.EFBIG, "message": "Larger than allowed"}
        self.expects_more = False
        self.is_over = op in ("done", "failed")
        self.answers.put((op, fields, payload))
        return True


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
        self._request = FileRequest(0, 0)
        self._turn = threading.Lock()
        self._has_ended = False

    def answer(self, op: str, fields: dict[str, Any], payload: bytes) -> bool:
        """Accept an answer from the sandbox. Returns whether it belongs to the current request."""
        request = self._request
        return fields["id"] == request.number and request.accept(op, fields, payload)

    def end(self) -> None:
        self._has_ended = True
        self._request.answers.put(None)

    def data(self, op: str, path: str, limit: int = 0, **asked: Any) -> bytes:
        """What the sandbox answers, at most `limit` bytes."""
        with self._turn:
            return b"".join(self._pieces(op, path, limit, **asked))

    def value(self, op: str, path: str, **asked: Any) -> Any:
        """An answer in JSON."""
        try:
            return file_answer(op, self.data(op, path, NAMES_LIMIT, **asked))
        except Misfit as misfit:
            raise OSError(errno.EBADMSG, f"The sandbox's answer is {misfit}", path) from None

    @contextmanager
    def sending(self, op: str, path: str, **asked: Any) -> Iterator[Callable[[bytes], int]]:
        """A request with data; gives a function that sends a piece when the sandbox asks for it."""

        def send(data: bytes) -> int:
            # After a failure `tarfile` still writes its buffer, for which nobody asks.
            if not self._request.is_over:
                self._next_answer(path)
                self._request.expects_more = True
                self._send_control("data", data)
            return len(data)

        with self._turn:
            request = self._ask(op, path, **asked)
            try:
                yield send
                self._next_answer(path)
            except BaseException:
                # Also for Ctrl-C: otherwise the sandbox would wait for the rest, and later requests for it.
                if not request.is_over:
                    self._send_control("end", aborted=True)
                raise
            self._send_control("end", aborted=False)
            self._next_answer(path)

    def _pieces(self, op: str, path: str, limit: int, **asked: Any) -> Iterator[bytes]:
        self._ask(op, path, limit=limit, **asked)
        while True:
            is_done, payload = self._next_answer(path)
            if is_done:
                return
            yield payload

    def _ask(self, op: str, path: str, limit: int | None = None, **fields: Any) -> FileRequest:
        self._request = request = FileRequest(next(self._ids), limit)
        if self._has_ended:
            request.answers.put(None)
        self._send_control(op, id=request.number, path=os.fspath(path), limit=limit, **fields)
        return request

    def _next_answer(self, path: str) -> tuple[bool, bytes]:
        """Whether the current request is done, and a piece. Raises the OSError of a request that failed.

        Raises the exception of `lost` when the sandbox is gone or was given up for not answering.
        """
        answers = self._request.answers
        try:
            answer = answers.get(timeout=ANSWER_SECONDS)
        except queue.Empty:
            self._give_up(f"it did not answer a file request for {ANSWER_SECONDS:.0f} seconds")
            # `lost` knows the reason only when the reader thread has reported the end.
            while (answer := answers.get()) is not None:
                pass
        if answer is None:
            # The end is reported once, and `_sending` can ask again.
            answers.put(None)
            raise self._lost()
        op, fields, payload = answer
        if op == "failed":
            raise failure(fields, path)
        return op == "done", payload


def write_archive(tree: Path, send: Callable[[bytes], int]) -> None:
    file: Any = SimpleNamespace(write=send)
    with tarfile.open(fileobj=file, mode="w|", bufsize=CHUNK) as archive:
        for name in sorted(os.listdir(tree)):
            archive.add(tree / name, arcname=name, filter=anonymous)


def failure(fields: dict[str, Any], path: str) -> OSError:
    """The sandbox's OSError, as if it had been raised on the host."""
    number, message = fields["errno"], fields["message"]
    return OSError(f"{message}: {path!r}") if number is None else OSError(number, message, path)


def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """The entry without its owner, so that the sandbox's user owns it. None for devices and pipes."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry if entry.isreg() or entry.isdir() or entry.issym() or entry.islnk() else None
