"""What an agent prints: only its beginning and its end are captured, since pytest holds that in memory."""

from __future__ import annotations

import io
import os
import stat
import sys
import threading
from collections import deque
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any

from pytest_super.kernel.output import HEAD, PIECE, TAIL

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


@contextmanager
def prints_bounded(config: pytest.Config) -> Iterator[None]:
    """Let no more be captured of what is printed in here; without capture it goes on as it comes."""
    if config.getoption("capture", "no") == "no":
        yield
        return
    with ExitStack() as stack:
        for descriptor in (1, 2):
            stack.callback(shorten, descriptor, size_of(descriptor))
        out, err = BoundedStream("stdout"), BoundedStream("stderr")
        stack.callback(out.finish)
        stack.callback(err.finish)
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        yield


class BoundedStream(io.TextIOBase):
    """In place of a standard stream: passes on the beginning of what is written, and in `finish` its end.

    Later, in a logger's hands say, it stands for whatever the standard stream is then.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._stream: Any = getattr(sys, name)
        self._lock = threading.RLock()
        self._room = HEAD
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._omitted = 0
        self._is_finished = False

    def __getattr__(self, name: str) -> Any:
        """What else a standard stream has: `reconfigure`, `name` and such."""
        if name == "_stream":
            raise AttributeError(name)
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._lock:
            if self._is_finished:
                now = getattr(sys, self._name)
                return int((self._stream if now is self else now).write(text))
            first, rest = text[: self._room], text[self._room :]
            if first:
                self._room -= len(first)
                self._stream.write(first)
            if rest:
                self._keep(rest)
        return len(text)

    def _keep(self, text: str) -> None:
        surplus = max(0, len(text) - TAIL)
        text = text[surplus:]
        self._omitted += surplus
        self._tail_size += len(text)
        if self._tail and len(self._tail[-1]) < PIECE:
            text = self._tail.pop() + text
        self._tail.append(text)
        while self._tail_size - len(self._tail[0]) >= TAIL:
            given_up = len(self._tail.popleft())
            self._tail_size -= given_up
            self._omitted += given_up

    def finish(self) -> None:
        with self._lock:
            self._is_finished = True
            surplus = max(0, self._tail_size - TAIL)
            tail = "".join(self._tail)[surplus:]
            if omitted := self._omitted + surplus:
                self._stream.write(note(omitted, "characters"))
            self._stream.write(tail.encode("utf-8", "replace").decode())
            self._tail.clear()

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return int(self._stream.fileno())

    def isatty(self) -> bool:
        return bool(self._stream.isatty())

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return str(self._stream.encoding)

    @property
    def buffer(self) -> BoundedBytes:
        return BoundedBytes(self)


class BoundedBytes(io.RawIOBase):
    """The same for bytes, which are UTF-8."""

    def __init__(self, stream: BoundedStream) -> None:
        self._text = stream

    def write(self, data: Any) -> int:
        self._text.write(bytes(data).decode("utf-8", "replace"))
        return len(bytes(data))

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._text.fileno()


def size_of(descriptor: int) -> int:
    """0 where it is none."""
    try:
        return os.fstat(descriptor).st_size
    except OSError:
        return 0


def shorten(descriptor: int, begun: int) -> None:
    """Cut what child processes have written since the file had `begun` bytes: it is no sys.stdout of ours.

    Nothing but a file without a name, which is how pytest captures; a person's log has one.
    """
    written = size_of(descriptor) - begun
    if written <= 3 * (HEAD + TAIL) or not is_nameless(os.fstat(descriptor)):
        return
    tail = os.pread(descriptor, TAIL, begun + written - TAIL)
    os.ftruncate(descriptor, begun + HEAD)
    os.lseek(descriptor, 0, os.SEEK_END)
    os.write(descriptor, note(written - HEAD - TAIL, "bytes").encode() + tail)


def is_nameless(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 0


def note(omitted: int, what: str) -> str:
    return f"\n[... {omitted} {what} left out ...]\n"
