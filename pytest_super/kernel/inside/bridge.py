"""The main process of a sandbox: starts ipykernel and carries its messages over standard input and output.

Delivered into the sandbox, with the modules it imports, as source text (see `delivery`). Requires Python 3.8
and ipykernel 6, or newer. It also runs programs, for which no kernel is needed.

The bridge ends when its input ends, when the host is silent for too long, or when nobody reads its output.
Then it kills all its descendants. It keeps three rules: reading never waits for writing, so that an interrupt
gets through a flood; no output of the kernel is lost; and the data that waits here is bounded, because the
kernel is stopped when there is too much.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import zmq

from pytest_super.kernel.inside import frames, processes, supervision
from pytest_super.kernel.inside.filework import FileWork
from pytest_super.kernel.inside.kernel_connection import KernelConnection
from pytest_super.kernel.inside.observer import Observer
from pytest_super.kernel.inside.outbox import Outbox
from pytest_super.kernel.inside.program_run import ProgramRun

TICK_MILLISECONDS = 1000
# A host that is silent for this long is gone, even if the stream is open. Its pings replace the value.
FIRST_SILENCE = 60.0


class Bridge:
    def __init__(self, folder: str, kernel: processes.KernelProcess | None) -> None:
        self._folder = folder
        self._workdir = os.getcwd()
        self._number = 1
        self._input, output = claim_stdio()
        self._wake, wake_write = os.pipe()
        # `set_wakeup_fd` refuses a blocking descriptor, and the outbox must not block on a full pipe.
        for descriptor in (self._wake, wake_write):
            os.set_blocking(descriptor, False)
        # Python writes to the wakeup descriptor only for signals with a handler. Without the byte, the end of
        # a child would be noticed up to a tick late. A full pipe needs no warning: it wakes us anyway.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        self._outbox = Outbox(output, wake_write)
        self._files = FileWork(self._outbox.put_when_room)
        self._observer = Observer(self._send_control, folder)
        self._endpoint: Any = None
        self._decoder = frames.Decoder()
        self._last_received = time.monotonic()
        self._silence = FIRST_SILENCE
        self._is_stopped = False
        self._context = zmq.Context()
        self._poller = zmq.Poller()
        for source in (self._input, self._wake):
            self._poller.register(source, zmq.POLLIN)
        self._kernel = None if kernel is None else self._connected(kernel)
        # The last one, and those before it that have left processes that can still write.
        self._programs: list[ProgramRun] = []

    def run(self) -> None:
        """Forward messages until the host is gone."""
        for work in (self._outbox.write_all, self._files.work):
            threading.Thread(target=work, daemon=True).start()
        key = "" if self._kernel is None else self._kernel.process.key
        self._send_control("hello", key=key, observes=self._observer.start())
        while not self._outbox.is_closed and time.monotonic() - self._last_received < self._silence:
            self._handle_events()

    def _connected(self, kernel: processes.KernelProcess) -> KernelConnection:
        return KernelConnection(kernel, self._context, self._poller, self._outbox)

    def _running(self) -> Iterator[KernelConnection | ProgramRun]:
        if self._kernel is not None:
            yield self._kernel
        yield from self._programs

    def _send_control(self, op: str, **fields: Any) -> None:
        self._outbox.put(frames.encode_control(op, **fields))

    def _handle_events(self) -> None:
        """Wait for events and handle them all."""
        self._stop_or_go_on()
        waits = [one.wait_milliseconds(TICK_MILLISECONDS) for one in self._running()]
        ready = dict(self._poller.poll(min(waits, default=TICK_MILLISECONDS)))
        if self._wake in ready:
            os.read(self._wake, 4096)
        ended = processes.reap()
        self._observer.record_ends(ended)
        self._record_ends(ended)
        if self._input in ready:
            self._read_input()
        for one in self._running():
            one.handle(ready)

    def _stop_or_go_on(self) -> None:
        """Stop what runs while the outbox is full, because the host reads too slowly; nothing is dropped."""
        if self._is_stopped and self._outbox.has_room:
            self._is_stopped = False
            for one in self._running():
                one.go_on()
        elif self._outbox.is_full and not self._is_stopped:
            self._is_stopped = True
            for one in self._running():
                one.stop()

    def _record_ends(self, ended: dict[int, int]) -> None:
        for one in self._running():
            one.record_end(ended)

    # From the host

    def _read_input(self) -> None:
        data = os.read(self._input, 2**20)
        if not data:
            raise EOFError
        self._last_received = time.monotonic()
        for channel, parts in self._decoder.feed(data):
            if channel == frames.CONTROL:
                self._handle_control(*frames.decode_control(parts))
            elif self._kernel is not None:
                self._kernel.send(parts)

    def _handle_control(self, fields: dict[str, Any], payload: bytes) -> None:
        if fields["op"] in self._files.operations:
            self._files.request({**fields, "path": os.path.join(self._directory(), fields["path"])})
        else:
            getattr(self, "_on_" + fields.pop("op"))(payload, **fields)

    def _directory(self) -> str:
        """Where relative paths begin: the kernel's current directory, as in a cell."""
        return self._workdir if self._kernel is None else self._kernel.process.directory(self._workdir)

    def _on_ping(self, _: bytes, silence: float) -> None:
        """The host lives. From now on it counts as gone after `silence` seconds without a message."""
        self._silence = silence
        self._outbox.put(frames.encode_control("pong"), first=True)

    def _on_interrupt(self, _: bytes) -> None:
        if self._kernel is not None:
            self._kernel.interrupt()

    def _on_observe(self, content: bytes, path: str = "") -> None:
        if path:
            self._observer.expect_script(path, content)
        else:
            self._observer.settle()

    def _on_meter(self, _: bytes) -> None:
        self._observer.meter(self._kernel.process.pid if self._kernel else 0)

    def _on_kill(self, _: bytes) -> None:
        """Kill everything inside except us. The kernel's death is reported."""
        self._record_ends(processes.kill_descendants())

    def _on_restart(self, launcher: bytes) -> None:
        """Kill everything inside except us, and start a kernel."""
        # Also ends the polling of its standard error, which would spin if no new kernel can be started.
        self._record_ends(processes.kill_descendants())
        if self._kernel is not None:
            # We killed the kernel ourselves, so its death is not reported.
            self._kernel.death = ""
        self._on_kernel(launcher)

    def _on_kernel(self, launcher: bytes) -> None:
        """Start a kernel. The one before has ended, if there was one."""
        self._number += 1
        try:
            # The kernel starts in our own directory, which code inside can have removed and made again.
            os.chdir(self._workdir)
            kernel = processes.KernelProcess(self._folder, self._number, launcher.decode())
        except OSError as error:
            self._send_control("died", why=f"it could not be started: {error}")
            return
        # Not before the new kernel has started: if it cannot be, polling goes on with the old sockets.
        if self._kernel is not None:
            self._kernel.close()
        self._kernel = self._connected(kernel)
        if self._is_stopped:
            self._kernel.stop()
        self._send_control("started", key=kernel.key)

    def _on_program(self, given: bytes, id: int) -> None:
        program = ProgramRun(id, self._poller, self._outbox)
        self._programs = [*(one for one in self._programs if one.give_up()), program]
        program.start(**json.loads(given), folder=self._directory())
        if self._is_stopped:
            program.stop()

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


def claim_stdio() -> tuple[int, int]:
    """Move standard input and output to other descriptors, so that nothing else writes into the frames."""
    claimed = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return claimed


def main(folder: str, kernel: processes.KernelProcess | None) -> None:
    """Run the bridge until the host is gone, then kill all processes."""
    supervision.adopt_orphans()
    supervision.go_on_when_parent_ends()
    try:
        Bridge(folder, kernel).run()
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
