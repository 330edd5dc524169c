"""The main process of a sandbox: starts ipykernel and carries its messages over standard input and output.

Delivered into the sandbox, with the modules it imports, as source text (see `delivery`). Requires Python 3.8
and ipykernel 6, or newer.

The bridge ends when its input ends, when the host is silent for too long, or when nobody reads its output.
Then it kills all its descendants. It keeps three rules: reading never waits for writing, so that an interrupt
gets through a flood; no output of the kernel is lost; and the data that waits here is bounded, because the
kernel is stopped when there is too much.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import zmq

from pytest_super.kernel.inside import frames, processes, supervision
from pytest_super.kernel.inside.filework import FileWork
from pytest_super.kernel.inside.message_size import Clipper
from pytest_super.kernel.inside.observer import Observer
from pytest_super.kernel.inside.outbox import Outbox

if TYPE_CHECKING:
    from collections.abc import Iterator

TICK = 1.0
# Without a message for this long, we assume that a dead kernel's last messages have arrived.
STILL_SECONDS = 0.1
# So many frames of output at most go to the outbox between two looks at what the host sends.
FRAMES_AT_ONCE = 16
# A host that is silent for this long is gone, even if the stream is open. Its pings replace the value.
FIRST_SILENCE = 60.0
FILE_OPS = frozenset(
    (
        *("read", "piece", "list", "resolve", "search", "digests", "clock", "changed", "changes"),
        *("remove", "write", "upload"),
    )
)


class Bridge:
    def __init__(self, folder: str, launcher: str, kernel: processes.KernelProcess) -> None:
        self._folder, self._launcher, self._kernel = folder, launcher, kernel
        self._workdir = os.getcwd()
        self._number = 1
        self._input, output = claim_stdio()
        wake_read, wake_write = os.pipe()
        # `set_wakeup_fd` refuses a blocking descriptor, and the outbox must not block on a full pipe.
        for descriptor in (wake_read, wake_write):
            os.set_blocking(descriptor, False)
        # Python writes to the wakeup descriptor only for signals with a handler. Without the byte, a death
        # of the kernel would be noticed up to a TICK late. A full pipe needs no warning: it wakes us anyway.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        self._wake = wake_read
        self._outbox = Outbox(output, wake_write)
        self._files = FileWork(self._outbox.put_when_room)
        self._observer = Observer(self._send_control, folder)
        self._endpoint: Any = None
        self._decoder = frames.Decoder()
        self._last_received = time.monotonic()
        self._silence = FIRST_SILENCE
        self._is_stopped = False
        # What is left of the last message on IOPUB.
        self._pieces: Iterator[bytes] = iter(())
        self._has_more_output = False
        # Why the kernel died: None while it lives, "" once the death needs no report.
        self._death: str | None = None
        self._last_message = 0.0

    def run(self) -> None:
        """Forward messages until the host is gone."""
        for work in (self._outbox.write_all, self._files.work):
            threading.Thread(target=work, daemon=True).start()
        self._context = zmq.Context()
        self._connect(self._kernel)
        self._send_control("hello", key=self._kernel.key, observes=self._observer.start())
        while self._has_host():
            self._handle_events()

    def _connect(self, kernel: processes.KernelProcess) -> None:
        self._kernel = kernel
        # Only two of Jupyter's four sockets: `input()` is refused, and signals interrupt the kernel.
        self._shell = connect(self._context, zmq.DEALER, kernel.address_of(frames.SHELL))
        self._iopub = connect(self._context, zmq.SUB, kernel.address_of(frames.IOPUB))
        self._clipper = Clipper(kernel.key)
        self._pieces = iter(())
        self._poller = zmq.Poller()
        for source in (self._input, self._wake, kernel.stderr, self._shell, self._iopub):
            self._poller.register(source, zmq.POLLIN)

    def _send_control(self, op: str, **fields: Any) -> None:
        self._outbox.put(frames.encode_control(op, **fields))

    def _has_host(self) -> bool:
        return not self._outbox.is_closed and time.monotonic() - self._last_received < self._silence

    def _handle_events(self) -> None:
        """Wait for events and handle them all."""
        self._stop_or_continue_kernel()
        ready = dict(self._poller.poll(self._poll_milliseconds()))
        if self._wake in ready:
            os.read(self._wake, 4096)
        self._record_death(processes.reap())
        if self._kernel.stderr in ready:
            self._kernel.read_stderr()
        if self._input in ready:
            self._read_input()
        self._forward_output()
        self._forward_replies()
        self._report_death()

    def _poll_milliseconds(self) -> int:
        if self._has_more_output and not self._is_stopped:
            return 0
        # A dead kernel sends nothing that could wake us after STILL_SECONDS.
        return 20 if self._death else int(TICK * 1000)

    def _stop_or_continue_kernel(self) -> None:
        """Stop the kernel while the outbox is full, because the host reads too slowly; nothing is dropped."""
        if self._is_stopped and self._outbox.has_room:
            self._is_stopped = False
            self._kernel.signal(signal.SIGCONT)
            self._poller.register(self._iopub, zmq.POLLIN)
        elif self._outbox.is_full and not self._is_stopped:
            self._is_stopped = True
            self._kernel.signal(signal.SIGSTOP)
            # We do not read it now, so messages that wait there would make polling spin.
            self._poller.unregister(self._iopub)

    # From the kernel to the host

    def _forward_replies(self) -> None:
        while (parts := receive(self._shell)) is not None:
            self._last_message = time.monotonic()
            for frame in self._clipper.frames(frames.SHELL, parts):
                self._outbox.put(frame)

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

    def _record_death(self, ended: dict[int, int]) -> None:
        if self._kernel.pid in ended and self._death is None:
            self._death = self._kernel.cause_of_death(ended[self._kernel.pid])
            self._last_message = time.monotonic()
            # A pipe without writers is always ready to read, so polling it would spin.
            self._poller.unregister(self._kernel.stderr)

    def _report_death(self) -> None:
        """Report the kernel's death once, after the last of its messages."""
        is_still = time.monotonic() - self._last_message > STILL_SECONDS
        if not self._death or self._is_stopped or self._has_more_output or not is_still:
            return
        self._send_control("died", why=self._death)
        self._death = ""

    # From the host

    def _read_input(self) -> None:
        data = os.read(self._input, 2**20)
        if not data:
            raise EOFError
        self._last_received = time.monotonic()
        for channel, parts in self._decoder.feed(data):
            if channel == frames.CONTROL:
                self._handle_control(*frames.decode_control(parts))
            else:
                self._shell.send_multipart(parts)

    def _handle_control(self, fields: dict[str, Any], payload: bytes) -> None:
        if fields["op"] in FILE_OPS:
            # Relative to the kernel's current directory, as in a cell.
            path = os.path.join(self._kernel.directory(otherwise=self._workdir), fields["path"])
            self._files.request({**fields, "path": path})
        else:
            getattr(self, "_on_" + fields.pop("op"))(payload, **fields)

    def _on_ping(self, _: bytes, silence: float) -> None:
        """The host lives. From now on it counts as gone after `silence` seconds without a message."""
        self._silence = silence
        self._outbox.put(frames.encode_control("pong"), first=True)

    def _on_interrupt(self, _: bytes) -> None:
        """Interrupt the kernel and its process group, as Ctrl-C in a terminal does."""
        if self._death is None:
            self._kernel.signal(signal.SIGINT, group=True)

    def _on_observe(self, content: bytes, path: str = "") -> None:
        if path:
            self._observer.expect_script(path, content)
        else:
            self._observer.settle()

    def _on_meter(self, _: bytes) -> None:
        self._observer.meter(self._kernel.pid)

    def _on_kill(self, _: bytes) -> None:
        """Kill everything inside except us. The kernel's death is reported."""
        self._record_death(processes.kill_descendants())

    def _on_restart(self, _: bytes) -> None:
        # Also ends the polling of its standard error, which would spin if no new kernel can be started.
        self._record_death(processes.kill_descendants())
        # We killed the kernel ourselves, so its death is not reported.
        self._death = ""
        self._number += 1
        try:
            # The new kernel starts in our own directory, which code inside can have removed and made again.
            os.chdir(self._workdir)
            kernel = processes.KernelProcess(self._folder, self._number, self._launcher)
        except OSError as error:
            self._send_control("died", why=f"it could not be started: {error}")
            return
        # Not before the new kernel has started: if it cannot be, polling goes on with the old sockets.
        self._shell.close()
        self._iopub.close()
        os.close(self._kernel.stderr)
        self._death, self._is_stopped = None, False
        self._connect(kernel)
        self._send_control("restarted", key=kernel.key)

    def _on_data(self, payload: bytes) -> None:
        self._files.receive(payload)

    def _on_end(self, _: bytes, aborted: bool = False) -> None:
        self._files.receive(None if aborted else b"")

    def _on_listen(self, program: bytes, secret: str, headers: list[str]) -> None:
        """Start the HTTP endpoint; the host sends its source only when it needs the endpoint."""
        scope: dict[str, Any] = {"__name__": "pytest_super.kernel.inside.endpoint"}
        try:
            exec(compile(program, "endpoint", "exec"), scope)
            self._endpoint = scope["Endpoint"](self._outbox.put_when_room, secret, headers)
            self._endpoint.start()
        except Exception as error:
            self._send_control("listening", error=str(error))
        else:
            self._send_control("listening", port=self._endpoint.port)

    def _on_call(self, payload: bytes, **fields: Any) -> None:
        self._endpoint.receive(fields, payload)


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


def claim_stdio() -> tuple[int, int]:
    """Move standard input and output to other descriptors, so that nothing else writes into the frames."""
    claimed = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return claimed


def main(launcher: str, folder: str, kernel: processes.KernelProcess) -> None:
    """Run the bridge until the host is gone, then kill all processes."""
    supervision.adopt_orphans()
    supervision.go_on_when_parent_ends()
    try:
        Bridge(folder, launcher, kernel).run()
        code = 0
    except EOFError:
        code = 0
    except BaseException:
        # Whatever it is, the processes must be killed.
        sys.excepthook(*sys.exc_info())
        code = 1
    # Only Linux leaves orphans to the process that supervises us.
    processes.kill_descendants()
    # Not `sys.exit`, which would wait for threads that are blocked on the host.
    os._exit(code)
