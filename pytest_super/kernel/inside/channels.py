"""The ZMQ sockets to one kernel process. Delivered into the sandbox."""

from __future__ import annotations

from typing import Any

import zmq

from pytest_super.kernel.inside import frames, processes


class Channels:
    """The sockets to one kernel process.

    Only two of Jupyter's four: `input()` is refused, and signals interrupt the kernel.
    """

    def __init__(self, context: Any, kernel: processes.KernelProcess) -> None:
        self.shell = connect(context, zmq.DEALER, kernel.address_of(frames.SHELL))
        self.iopub = connect(context, zmq.SUB, kernel.address_of(frames.IOPUB))

    def close(self) -> None:
        for socket in (self.shell, self.iopub):
            socket.close(0)


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
