"""The kernel as the bridge has it: its process, its sockets, its death. Delivered into the sandbox."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import zmq

from pytest_super.kernel.inside import frames
from pytest_super.kernel.inside.message_size import Clipper
from pytest_super.kernel.inside.outbox import Outbox
from pytest_super.kernel.inside.processes import KernelProcess

# Without a message for this long, we assume that a dead kernel's last messages have arrived.
STILL_SECONDS = 0.1
# So many frames of output at most go to the outbox between two looks at what the host sends.
FRAMES_AT_ONCE = 16


class KernelConnection:
    """Puts what the kernel sends into the outbox. While that is full, the kernel is stopped."""

    def __init__(self, process: KernelProcess, context: Any, poller: Any, outbox: Outbox) -> None:
        self.process = process
        # Why the kernel died: None while it lives, "" once the death needs no report.
        self.death: str | None = None
        self._outbox = outbox
        # Only two of Jupyter's four sockets: `input()` is refused, and signals interrupt the kernel.
        self._shell = connect(context, zmq.DEALER, process.address_of(frames.SHELL))
        self._iopub = connect(context, zmq.SUB, process.address_of(frames.IOPUB))
        self._clipper = Clipper(process.key)
        # What is left of the last message on IOPUB.
        self._pieces: Iterator[bytes] = iter(())
        self._has_more_output = self._is_stopped = False
        self._last_message = 0.0
        self._poller = poller
        for source in (process.stderr, self._shell, self._iopub):
            poller.register(source, zmq.POLLIN)

    def send(self, parts: list[bytes]) -> None:
        self._shell.send_multipart(parts)

    def wait_milliseconds(self, most: int) -> int:
        """How long the bridge can wait for events."""
        if self._has_more_output and not self._is_stopped:
            return 0
        # A dead kernel sends nothing that could wake us after STILL_SECONDS.
        return 20 if self.death else most

    def handle(self, ready: dict[Any, int]) -> None:
        if self.process.stderr in ready:
            self.process.read_stderr()
        self._forward_output()
        while (parts := receive(self._shell)) is not None:
            self._last_message = time.monotonic()
            for frame in self._clipper.frames(frames.SHELL, parts):
                self._outbox.put(frame)
        self._report_death()

    def stop(self) -> None:
        self._is_stopped = True
        self.process.signal(signal.SIGSTOP)
        # We do not read it now, so messages that wait there would make polling spin.
        self._poller.unregister(self._iopub)

    def go_on(self) -> None:
        self._is_stopped = False
        self.process.signal(signal.SIGCONT)
        self._poller.register(self._iopub, zmq.POLLIN)

    def interrupt(self) -> None:
        """Interrupt the kernel and its process group, as Ctrl-C in a terminal does."""
        if self.death is None:
            self.process.signal(signal.SIGINT, group=True)

    def record_end(self, ended: dict[int, int]) -> None:
        """Look for the kernel among the children that have ended."""
        if self.process.pid in ended and self.death is None:
            self.death = self.process.cause_of_death(ended[self.process.pid])
            self._last_message = time.monotonic()
            # A pipe without writers is always ready to read, so polling it would spin.
            self._poller.unregister(self.process.stderr)

    def close(self) -> None:
        """Once the kernel has ended."""
        for source in (self._shell, self._iopub, self.process.stderr):
            if source in self._poller:
                self._poller.unregister(source)
        self._shell.close()
        self._iopub.close()
        os.close(self.process.stderr)

    def _forward_output(self) -> None:
        """Forward some of the kernel's output while the outbox has room."""
        self._has_more_output = True
        for _ in range(FRAMES_AT_ONCE):
            if self._outbox.is_full:
                return
            frame = self._next_frame()
            if frame is None:
                self._has_more_output = False
                return
            self._outbox.put(frame)

    def _next_frame(self) -> bytes | None:
        """The next piece of the message at hand, or of the next one."""
        while (frame := next(self._pieces, None)) is None:
            parts = receive(self._iopub)
            if parts is None:
                return None
            self._last_message = time.monotonic()
            self._pieces = self._clipper.frames(frames.IOPUB, parts)
        return frame

    def _report_death(self) -> None:
        """Report the kernel's death once, after the last of its messages."""
        is_still = time.monotonic() - self._last_message > STILL_SECONDS
        if not self.death or self._is_stopped or self._has_more_output or not is_still:
            return
        self._outbox.put(frames.encode_control("died", why=self.death))
        self.death = ""


def connect(context: Any, kind: int, address: str) -> Any:
    socket = context.socket(kind)
    socket.linger = 0
    # With ZMQ's default limits the kernel drops output and its idle message while we are slow.
    # They must be set before connecting.
    socket.rcvhwm = socket.sndhwm = 0
    # The kernel binds in a few tenths of a second; the default would retry only every 0.1 s.
    socket.reconnect_ivl = 5
    if kind == zmq.SUB:
        socket.subscribe(b"")
    socket.connect(address)
    return socket


def receive(socket: Any) -> list[bytes] | None:
    """The next message, or None if there is none yet."""
    try:
        parts: list[bytes] = socket.recv_multipart(zmq.NOBLOCK)
    except zmq.Again:
        return None
    return parts
