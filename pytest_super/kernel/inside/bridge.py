"""The main process of a sandbox: starts ipykernel and carries its messages over standard input and output.

Delivered into the sandbox, with the modules it imports, as source text (see `delivery`). Runs with whatever
Python (3.8 or newer) and ipykernel (6 or newer) are there.

It ends when its input does, when the host was silent for too long or when nobody reads its output; and all
that descends from it ends with it. What must hold: reading never waits for writing, so that an interrupt gets
through a flood; nothing of the kernel's output is lost; what waits here is bounded, by stopping the kernel
meanwhile.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import zmq

from pytest_super.kernel.inside import frames, processes
from pytest_super.kernel.inside.filework import FileWork
from pytest_super.kernel.inside.message_size import Clipper
from pytest_super.kernel.inside.outbox import Outbox

if TYPE_CHECKING:
    from collections.abc import Iterator

TICK = 1.0
# How long the sockets of a dead kernel must be still before we believe that all it sent has come.
STILL_SECONDS = 0.1
# A host that says nothing for so long is gone, even if it still holds the stream. Its pings say how long.
FIRST_SILENCE = 60.0


class Channels:
    """The sockets to one life of the kernel."""

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
        # With the default the kernel drops output, and its idle message, while we are slow.
        # It counts for connections made later.
        socket.rcvhwm = socket.sndhwm = 0
        # The kernel binds some tenths of a second from now, and the default would look for it every 0.1 s.
        socket.reconnect_ivl = 5
        if kind == zmq.SUB:
            socket.subscribe(b"")
        socket.connect(address)
        return socket

    def close(self) -> None:
        for socket in self.sockets.values():
            socket.close(0)


class Bridge:
    def __init__(self, folder: str, launcher: str, kernel: processes.KernelProcess) -> None:
        self._folder, self._launcher, self._kernel = folder, launcher, kernel
        self._workdir = os.getcwd()
        self._number = 1
        self._input, output = claim_stdio()
        wake_read, wake_write = os.pipe()
        for descriptor in (wake_read, wake_write):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        self._wake = wake_read
        self._outbox = Outbox(output, wake_write)
        self._files = FileWork(self._outbox.put_when_room)
        self._endpoint: Any = None
        self._decoder = frames.Decoder()
        self._heard = time.monotonic()
        self._silence = FIRST_SILENCE
        self._is_stopped = False
        self._pieces: Iterator[bytes] = iter(())
        self._death: dict[str, Any] | None = None
        self._last_message = 0.0

    def run(self) -> None:
        """Carry until the host is gone."""
        for work in (self._outbox.write_all, self._files.work):
            threading.Thread(target=work, daemon=True).start()
        self._context = zmq.Context()
        self._join(self._kernel)
        self._tell("hello", key=self._kernel.key, workdir=self._workdir, pid=self._kernel.pid)
        while self._host_is_there():
            self._turn()

    def _join(self, kernel: processes.KernelProcess) -> None:
        self._kernel = kernel
        self._channels = Channels(self._context, kernel)
        self._clipper = Clipper(kernel.key)
        self._pieces = iter(())
        self._poller = zmq.Poller()
        for descriptor in (self._input, self._wake, kernel.stderr):
            self._poller.register(descriptor, zmq.POLLIN)
        for socket in self._channels.sockets.values():
            self._poller.register(socket, zmq.POLLIN)

    def _tell(self, op: str, **fields: Any) -> None:
        self._outbox.put(frames.encode_control(op, **fields))

    def _host_is_there(self) -> bool:
        return not self._outbox.is_closed and time.monotonic() - self._heard < self._silence

    def _turn(self) -> None:
        """Wait for something to happen and handle it all."""
        self._govern()
        ready = dict(self._poller.poll(self._patience()))
        if self._wake in ready:
            os.read(self._wake, 4096)
        self._bury(processes.reap())
        if self._kernel.stderr in ready:
            self._kernel.listen()
        if self._input in ready:
            self._hear()
        self._carry(ready)
        self._report_death()

    def _patience(self) -> int:
        """Milliseconds that we may wait for something to happen."""
        if self._death:
            return 20
        return int(TICK * 1000)

    def _govern(self) -> None:
        """Stop the kernel while more waits than the host has read; nothing is dropped."""
        if self._is_stopped and self._outbox.has_room:
            self._is_stopped = False
            self._kernel.signal(signal.SIGCONT)
            self._poller.register(self._channels.sockets[frames.IOPUB], zmq.POLLIN)
        elif self._outbox.is_full and not self._is_stopped:
            self._is_stopped = True
            self._kernel.signal(signal.SIGSTOP)
            self._poller.unregister(self._channels.sockets[frames.IOPUB])

    # From the kernel to the host

    def _carry(self, ready: dict[Any, int]) -> None:
        """Forward what the kernel sent."""
        self._carry_output()
        for channel, socket in self._channels.sockets.items():
            if socket in ready and channel != frames.IOPUB:
                for parts in received(socket):
                    self._last_message = time.monotonic()
                    for frame in self._clipper.frames(channel, parts):
                        self._outbox.put(frame)

    def _carry_output(self) -> None:
        """Forward the kernel's output piece by piece, as far as there is room."""
        while not self._outbox.is_full:
            frame = next(self._pieces, None)
            if frame is not None:
                self._outbox.put(frame)
                continue
            parts = receive(self._channels.sockets[frames.IOPUB])
            if parts is None:
                return
            self._last_message = time.monotonic()
            self._pieces = self._clipper.frames(frames.IOPUB, parts)

    def _bury(self, ended: dict[int, int]) -> None:
        if self._kernel.pid in ended and self._death is None:
            self._death = self._kernel.death(ended[self._kernel.pid])
            self._last_message = time.monotonic()
            # Nobody writes there any more, which would count as something to read for ever.
            self._poller.unregister(self._kernel.stderr)

    def _report_death(self) -> None:
        """Say that the kernel died, once, after the last of what it sent."""
        is_still = time.monotonic() - self._last_message > STILL_SECONDS
        if not self._death or self._is_stopped or self._outbox.is_full or not is_still:
            return
        self._tell("died", **self._death)
        self._death = {}

    # From the host

    def _hear(self) -> None:
        data = os.read(self._input, 2**20)
        if not data:
            raise EOFError
        self._heard = time.monotonic()
        for channel, parts in self._decoder.feed(data):
            if channel != frames.CONTROL:
                self._channels.sockets[channel].send_multipart(parts)
                continue
            fields, payload = frames.decode_control(parts)
            getattr(self, "_on_" + fields.pop("op"))(payload, **fields)

    def _on_ping(self, _: bytes, silence: float) -> None:
        """The host lives, and may be silent for so many seconds from now on."""
        self._silence = silence
        self._outbox.put_first(frames.encode_control("pong"))

    def _on_interrupt(self, _: bytes) -> None:
        """As a terminal does: the kernel and what it started in its own group."""
        if self._death is None:
            self._kernel.signal(signal.SIGINT, group=True)

    def _on_restart(self, _: bytes) -> None:
        self._bury(processes.kill_descendants())
        # Nothing to report: it was us.
        self._death = {}
        self._number += 1
        try:
            os.chdir(self._workdir)
            kernel = processes.KernelProcess(self._folder, self._number, self._launcher)
        except OSError as error:
            self._tell("died", stderr=f"it could not be started: {error}")
            return
        self._channels.close()
        os.close(self._kernel.stderr)
        self._death, self._is_stopped = None, False
        self._join(kernel)
        self._tell("restarted", key=kernel.key, pid=kernel.pid)

    def _on_data(self, payload: bytes) -> None:
        self._files.receive(payload)

    def _on_end(self, _: bytes, aborted: bool = False) -> None:
        self._files.receive(None if aborted else b"")

    def _request(self, op: str, fields: dict[str, Any]) -> None:
        # Where the kernel is, a path means what it means in a cell.
        path = os.path.join(self._kernel.directory(otherwise=self._workdir), fields["path"])
        self._files.request({**fields, "op": op, "path": path})

    def _on_read(self, _: bytes, **fields: Any) -> None:
        self._request("read", fields)

    def _on_list(self, _: bytes, **fields: Any) -> None:
        self._request("list", fields)

    def _on_resolve(self, _: bytes, **fields: Any) -> None:
        self._request("resolve", fields)

    def _on_search(self, _: bytes, **fields: Any) -> None:
        self._request("search", fields)

    def _on_write(self, _: bytes, **fields: Any) -> None:
        self._request("write", fields)

    def _on_upload(self, _: bytes, **fields: Any) -> None:
        self._request("upload", fields)

    def _on_listen(self, program: bytes, secret: str) -> None:
        """Serve HTTP on the loopback by this program, which comes only where it is needed."""
        scope: dict[str, Any] = {"__name__": "pytest_super.kernel.inside.endpoint"}
        try:
            exec(compile(program, "endpoint", "exec"), scope)
            self._endpoint = scope["Endpoint"](self._outbox.put_when_room, secret)
            self._endpoint.start()
        except Exception as error:
            self._tell("listening", error=str(error))
        else:
            self._tell("listening", port=self._endpoint.port)

    def _on_call(self, payload: bytes, **fields: Any) -> None:
        self._endpoint.hear(fields, payload)


def receive(socket: Any) -> list[bytes] | None:
    try:
        parts: list[bytes] = socket.recv_multipart(zmq.NOBLOCK)
    except zmq.Again:
        return None
    return parts


def received(socket: Any) -> Iterator[list[bytes]]:
    while (parts := receive(socket)) is not None:
        yield parts


def claim_stdio() -> tuple[int, int]:
    """Our input and output for ourselves alone: nothing else may write into the frames."""
    claimed = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return claimed


def main(launcher: str, folder: str, kernel: processes.KernelProcess) -> None:
    """Be the bridge until the host is gone, then leave nothing: no process, nor the folders in `sys.argv`."""
    processes.adopt_orphans()
    processes.go_on_when_parent_ends()
    try:
        Bridge(folder, launcher, kernel).run()
        code = 0
    except EOFError:
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    processes.kill_descendants()
    remove([folder, *sys.argv[1:]])
    # Not `sys.exit`: threads that still wait for the host would hold us.
    os._exit(code)


def remove(folders: list[str]) -> None:
    """Remove the folders, but not one that a person wants to look into: it holds processes.KEEP."""
    import shutil

    for folder in folders:
        if not os.path.exists(os.path.join(folder, processes.KEEP)):
            shutil.rmtree(folder, ignore_errors=True)
