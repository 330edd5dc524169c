"""File operations in the sandbox, independent of the kernel. Delivered into the sandbox.

One thread runs the jobs in order. Each job is a request of the host and ends with `done` or `failed`.
"""

from __future__ import annotations

import errno
import json
import os
import queue
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from pytest_super.kernel.inside import lookup
from pytest_super.kernel.inside.frames import encode_control
from pytest_super.kernel.inside.lookup import open_regular
from pytest_super.kernel.inside.processes import oom_kills, remove_tree

CHUNK = 2**20
KINDS = {stat.S_IFLNK: "link", stat.S_IFDIR: "folder", stat.S_IFREG: "file"}


class Aborted(Exception):
    """The host cancelled the request while sending."""


class FileWork:
    """The jobs of the file channel. `request` and `receive` return at once; the thread runs `work`."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._jobs: queue.Queue[dict[str, Any]] = queue.Queue()
        self._incoming: queue.Queue[bytes | None] = queue.Queue()
        answers: dict[str, Callable[..., object]] = {
            "list": entries,
            "resolve": os.path.realpath,
            "clock": lambda _: time.time(),
            "memory_kills": lambda _: oom_kills(),
            "search": lookup.search,
            "digests": lookup.digests,
            "changed": lookup.changed,
            "changes": lookup.Watch().changes,
        }
        self.operations: dict[str, Callable[[dict[str, Any]], None]] = {
            "read": self._read,
            "piece": self._piece,
            "remove": lambda job: remove(job["path"]),
            "write": self._write,
            "upload": self._upload,
            **{op: partial(self._answer, find) for op, find in answers.items()},
        }

    def request(self, job: dict[str, Any]) -> None:
        """Queue a job: `op`, `id`, `path` (absolute), `limit` in bytes, and what else is `asked`."""
        self._jobs.put(job)

    def receive(self, chunk: bytes | None) -> None:
        """Accept a piece of data for the current job, b"" at its end, None if the host cancelled."""
        self._incoming.put(chunk)

    def work(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                self.operations[job["op"]](job)
            except Exception as error:
                # The thread must survive every job. The host raises the error.
                number = getattr(error, "errno", None)
                message = getattr(error, "strerror", None) or str(error) or type(error).__name__
                self._send(encode_control("failed", id=job["id"], errno=number, message=message))
            else:
                self._send(encode_control("done", id=job["id"]))

    def _read(self, job: dict[str, Any]) -> None:
        room = job["limit"]
        with open_regular(job["path"]) as file:
            while chunk := file.read(CHUNK):
                # Counted, not taken from `stat`: a file can grow, and files in /proc have the size 0.
                room -= len(chunk)
                if room < 0:
                    raise OSError(errno.EFBIG, f"Larger than {job['limit']} bytes")
                self._send(encode_control("data", chunk, id=job["id"]))

    def _piece(self, job: dict[str, Any]) -> None:
        with open_regular(job["path"]) as file:
            file.seek(job["asked"]["start"])
            self._send_data(job, file.read(job["limit"]))

    def _answer(self, find: Callable[..., object], job: dict[str, Any]) -> None:
        """Send what it finds at the path, in JSON."""
        self._send_data(job, json.dumps(find(job["path"], **job["asked"])).encode())

    def _send_data(self, job: dict[str, Any], data: bytes) -> None:
        for start in range(0, len(data), CHUNK):
            self._send(encode_control("data", data[start : start + CHUNK], id=job["id"]))

    def _write(self, job: dict[str, Any]) -> None:
        # In place, so that permissions, owners and links stay as they are.
        with open_regular(job["path"], os.O_WRONLY | os.O_CREAT) as file:
            reserve(file.fileno(), job["asked"]["size"])
            for chunk in self._chunks(job):
                file.write(chunk)
            # Here and not by O_TRUNC: if the disk is full, `reserve` fails and the file keeps its content.
            file.truncate()

    def _upload(self, job: dict[str, Any]) -> None:
        import tarfile

        make_folder(job["path"])
        chunks = self._chunks(job)
        incoming: Any = Incoming(chunks)
        with tarfile.open(fileobj=incoming, mode="r|") as archive:
            # The archive comes from a folder on the host, so links can keep pointing anywhere.
            archive.extraction_filter = lambda member, _: member
            archive.extractall(job["path"], with_room(archive, job["path"]))
        # The host waits until the padding at the archive's end is requested too.
        for _ in chunks:
            pass

    def _chunks(self, job: dict[str, Any]) -> Iterator[bytes]:
        """The data from the host. Each piece is requested, so that at most one waits here."""
        while True:
            self._send(encode_control("more", id=job["id"]))
            chunk = self._incoming.get()
            if chunk is None:
                raise Aborted("the host gave up")
            if not chunk:
                return
            yield chunk


class Incoming:
    """Chunks as a file object for a stream of `tarfile`, which takes pieces of any size."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks

    def read(self, _: int) -> bytes:
        return next(self._chunks, b"")


def remove(path: str) -> None:
    """Remove the file, link or folder, if it is there."""
    if os.path.isdir(path) and not os.path.islink(path):
        remove_tree(path)
        if os.path.lexists(path):
            raise OSError(errno.EACCES, "Cannot be removed")
    elif os.path.lexists(path):
        os.unlink(path)


def with_room(members: Iterable[Any], folder: str) -> Iterator[Any]:
    """The members of an archive; whatever stands in the place of the next one is removed."""
    for member in members:
        path = os.path.join(folder, member.name)
        make_folder(path if member.isdir() else os.path.dirname(path))
        if not member.isdir() and (os.path.islink(path) or not os.path.isfile(path)):
            remove(path)
        yield member


def make_folder(path: str) -> None:
    """Make the folder and those above it, in place of files and of links that lead nowhere.

    Not by `os.makedirs`, which recurses: a path can have 2,000 folders.
    """
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        if os.path.lexists(folder):
            os.unlink(folder)
        os.mkdir(folder)


def reserve(descriptor: int, size: int) -> None:
    """Allocate `size` bytes on the disk; if it is full, the file keeps its content."""
    old_size = os.fstat(descriptor).st_size
    try:
        if size > old_size and sys.platform == "linux":
            os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        # Some file systems do not support allocation.
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            os.ftruncate(descriptor, old_size)
            raise


def entries(folder: str) -> list[dict[str, Any]]:
    return [describe(entry) for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)]


def describe(entry: os.DirEntry[str]) -> dict[str, Any]:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return {"name": entry.name, "kind": "other", "size": 0, "modified": 0.0}
    # Not by methods of `entry`, which follow links: a link can point to itself.
    kind = KINDS.get(stat.S_IFMT(found.st_mode), "other")
    return {"name": entry.name, "kind": kind, "size": found.st_size, "modified": found.st_mtime}
