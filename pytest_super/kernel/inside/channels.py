"""The ZMQ sockets to one kernel process. Delivered into the sandbox."""

from __future__ import annotations

from typing import Any

import zmq

from pytest_super.kernel.inside import frames, processes


class Channels:
    """The sockets to one kernel process."""

    def __init__(self, context: Any, kernel: processes.KernelProcess) -> None:
        kinds = {
            frames.SHELL: zmq.DEALER,
            frames.IOPUB: zmq.SUB,
            frames.STDIN: zmq.DEALER,
            frames.KERNEL_CONTROL: zmq.DEALER,
        }
        self.sockets = {
            channel: self._connect(context, kind, kernel.address_of(channel))
            for channel, kind in kinds.items()
        }

    @staticmethod
    def _connect(context: Any, kind: int, address: str) -> Any:
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

    def close(self) -> None:
        for socket in self.sockets.values():
            socket.close(0)
