"""The queue of frames for the host and the thread that writes them. Delivered into the sandbox."""

from __future__ import annotations

import os
import threading
from collections import deque

# The kernel is stopped when more than HIGH_WATER waits, and continues when less than LOW_WATER is left.
HIGH_WATER = 16 * 2**20
LOW_WATER = 4 * 2**20


class Outbox:
    """Frames in the order of their `put`, which never blocks: an interrupt always gets through."""

    def __init__(self, descriptor: int, wake: int) -> None:
        """Write to `descriptor`; write a byte to `wake` when the host is gone or there is room again."""
        self._descriptor = descriptor
        self._wake = wake
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._changed = threading.Condition()
        self.is_closed = False

    @property
    def is_full(self) -> bool:
        return self._size > HIGH_WATER

    @property
    def has_room(self) -> bool:
        return self._size < LOW_WATER

    def put(self, frame: bytes, *, first: bool = False) -> None:
        """Put a frame after all others, or before them: a pong, which shows that we are alive."""
        with self._changed:
            self._frames.insert(0 if first else len(self._frames), frame)
            self._size += len(frame)
            self._changed.notify_all()

    def put_when_room(self, frame: bytes) -> None:
        """Like `put`, but block while the outbox is full: for threads that can wait."""
        with self._changed:
            self._changed.wait_for(lambda: not self.is_full or self.is_closed)
        self.put(frame)

    def write_all(self) -> None:
        """Write frames until the host is gone. Runs in its own thread."""
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._frames)
                    frame = self._frames.popleft()
                view = memoryview(frame)
                while view:
                    view = view[os.write(self._descriptor, view) :]
                self._written(len(frame))
        except OSError:
            self.is_closed = True
            self._wake_up()

    def _written(self, size: int) -> None:
        with self._changed:
            had_room = self.has_room
            self._size -= size
            self._changed.notify_all()
        if self.has_room and not had_room:
            self._wake_up()

    def _wake_up(self) -> None:
        try:
            os.write(self._wake, b"r")
        except OSError:
            # The pipe is full, so the bridge wakes up anyway.
            return
