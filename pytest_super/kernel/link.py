"""The host's end of the stream to a sandbox: frames, liveness checks, and who gets what arrives."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from pytest_super.kernel.cell import SandboxLostError
from pytest_super.kernel.delivery import bridge_program, launcher
from pytest_super.kernel.file_requests import FileChannel
from pytest_super.kernel.http_requests import HttpChannel
from pytest_super.kernel.incoming import Control, Incoming, Message
from pytest_super.kernel.inside import frames
from pytest_super.kernel.observed import ProcessChannel
from pytest_super.kernel.programs import ProgramChannel
from pytest_super.kernel.schema import CAUSE

if TYPE_CHECKING:
    from jupyter_client.session import Session

    from pytest_super.kernel.sandbox import Stream

READ_SIZE = 2**18
PING_SECONDS = 5.0
# A bridge that for this long sends nothing, not even a pong, or reads nothing hangs: we give its sandbox up.
SILENCE_SECONDS = 60.0
# The bridge gives us up after this time. A host process that is suspended (Ctrl-Z) for less finds it alive.
OWN_SILENCE_SECONDS = 300.0


class Connection:
    """Sends from any thread, until `close`. A thread of its own receives and calls the handlers."""

    def __init__(
        self, stream: Stream, *, on_frame: Callable[[int, list[bytes]], None], on_end: Callable[[str], None]
    ) -> None:
        """`on_end` is called once: with our reason if we ended the stream, else with ""."""
        self._stream = stream
        self._on_frame = on_frame
        self._on_end = on_end
        self._sending = threading.Lock()
        self._ended = threading.Event()
        # Waits of `_watch` since something was received, and since something was sent.
        self._silent = self._blocked = 0
        self._why = ""
        self._threads = [
            threading.Thread(target=work, name=f"super-kernel-{work.__name__.strip('_')}", daemon=True)
            for work in (self._receive, self._ping, self._watch)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def send_bytes(self, data: bytes) -> None:
        """Send. Errors are ignored, because the receiving thread reports a broken stream with its cause."""
        try:
            with self._sending:
                self._stream.write(data)
                self._blocked = 0
        except (OSError, ValueError):
            return

    def send(self, channel: int, parts: list[bytes]) -> None:
        self.send_bytes(frames.encode(channel, parts))

    def send_control(self, op: str, payload: bytes = b"", **fields: Any) -> None:
        self.send_bytes(frames.encode_control(op, payload, **fields))

    def give_up(self, why: str) -> None:
        """End the stream and any blocked sends; `on_end` receives `why`."""
        # The first reason is the cause; later ones follow from it.
        self._why = self._why or why
        self._stream.close()

    def close(self) -> None:
        """End the stream, any blocked sends and the threads. Idempotent."""
        self._ended.set()
        self._stream.close()
        for thread in self._threads:
            # A thread can join neither itself nor one that was never started. A slow listener can keep the
            # receiving thread, hence the time-out.
            if thread is not threading.current_thread() and thread.ident is not None:
                thread.join(timeout=5)

    def _receive(self) -> None:
        decoder = frames.Decoder()
        try:
            while data := self._stream.read(READ_SIZE):
                self._silent = 0
                for channel, parts in decoder.feed(data):
                    self._on_frame(channel, parts)
        except frames.BrokenFrame as error:
            self._why = f"the sandbox sent data that is not from the bridge: {error}"
        except (OSError, ValueError):
            # The stream was closed or has broken: only the sandbox, or whoever called `give_up`, knows why.
            pass
        finally:
            self._ended.set()
            self._on_end(self._why)

    def _ping(self) -> None:
        while not self._ended.wait(PING_SECONDS):
            self.send_control("ping", silence=OWN_SILENCE_SECONDS)

    def _watch(self) -> None:
        """Give up a silent sandbox. Not part of `_ping`, because a stopped bridge blocks every send.

        Counts its own waits: by the clock, every sandbox would be silent once we were suspended.
        """
        while not self._ended.wait(PING_SECONDS):
            self._silent += 1
            self._blocked += 1
            if max(self._silent, self._blocked) * PING_SECONDS > SILENCE_SECONDS:
                self.give_up(f"the sandbox did not answer for {SILENCE_SECONDS:.0f} seconds")
                return


class Events(Protocol):
    """Receives what a Link reports. The Link's reader thread calls all methods."""

    def on_start(self) -> None:
        """The bridge has started, or a kernel: requests can be sent to it."""

    def on_message(self, message: Message) -> None: ...

    def on_death(self, why: str) -> None:
        """The kernel process died; the sandbox lives."""

    def on_end(self) -> None:
        """The stream ended. Called once."""


class Link:
    """Sends requests to the kernel, and passes what arrives to `events` and the channels."""

    def __init__(
        self, stream: Stream, events: Events, *, clock: Callable[[], float], cause_of_death: Callable[[], str]
    ) -> None:
        """`cause_of_death` is the sandbox's."""
        self._events = events
        self._cause_of_death = cause_of_death
        self.is_open = True
        self._why = ""
        self.has_bridge = False
        self._session: Session | None = None
        self.incoming = Incoming()
        self._connection = Connection(stream, on_frame=self._on_frame, on_end=self._on_end)
        send = self._connection.send_control
        self.processes = ProcessChannel(send)
        self.programs = ProgramChannel(send, clock=clock, why_ended=lambda: self.cause_of_end)
        self.http = HttpChannel(send, lost=self._lost)
        self.files = FileChannel(send, lost=self._lost, give_up=self._connection.give_up)

    def start(self, *, with_kernel: bool) -> None:
        self._connection.start()
        self._connection.send_bytes(bridge_program(with_kernel=with_kernel))
        if with_kernel:
            # The import takes 0.1 s: do it while the kernel starts.
            import jupyter_client.session  # noqa: F401

    def close(self) -> None:
        self._connection.close()

    @cached_property
    def cause_of_end(self) -> str:
        """Why the stream ended. Raises EngineError when the engine failed."""
        # Also if the host ended the stream of a silent sandbox: the engine can be the reason for the silence.
        cause = self._cause_of_death()
        return str(CAUSE(self._why or cause))

    def _lost(self) -> SandboxLostError:
        return SandboxLostError(self.cause_of_end)

    @property
    def has_kernel(self) -> bool:
        """Whether a kernel was started and its key is known, so that requests can be signed."""
        return self._session is not None

    def request(self, kind: str, content: dict[str, Any]) -> str:
        """Send a request on the shell channel and return its id."""
        if self._session is None:
            raise RuntimeError("the kernel was not started")
        message = self._session.msg(kind, content)
        self._connection.send(frames.SHELL, self._session.serialize(message))
        return str(message["header"]["msg_id"])

    def interrupt(self) -> None:
        self._connection.send_control("interrupt")

    def kill(self) -> None:
        """Kill everything inside, and start nothing. The death of the kernel arrives later."""
        self._connection.send_control("kill")

    def start_kernel(self) -> None:
        """Start the first kernel. Its key arrives later."""
        self._connection.send_control("kernel", launcher())

    def restart(self) -> None:
        """Kill everything inside and start another kernel. Its key arrives later."""
        # Until the new key arrives, messages are ignored: they are of the old kernel.
        self._session = None
        self._connection.send_control("restart", launcher())

    def _on_end(self, why: str) -> None:
        # First, because the others ask for the cause when they end.
        self._why, self.is_open = why, False
        self._events.on_end()
        self.files.end()
        self.programs.end()
        self.processes.end()
        self.http.end()

    def _on_frame(self, channel: int, parts: list[bytes]) -> None:
        if channel == frames.CONTROL:
            control = self.incoming.control(parts)
            if control is not None and not self._accept(control):
                self.incoming.drop(control.op)
        elif self._session is not None:
            message = self.incoming.message(channel, parts, self._session.sign)
            if message is not None:
                self._events.on_message(message)

    def _accept(self, control: Control) -> bool:
        """Whether somebody waits for the frame, or it needs nobody who does."""
        op, fields, payload = control
        if op in ("data", "more", "done", "failed"):
            return self.files.answer(op, fields, payload)
        if op in ("hello", "process", "observed", "used"):
            self.processes.receive(op, fields)
        if op in ("printed", "ended"):
            return self.programs.receive(fields, payload)
        if op in ("hello", "started"):
            self.has_bridge = True
            if fields["key"]:
                from jupyter_client.session import Session

                # The stream is ours alone: nobody can replay a message, and remembering digests costs time.
                self._session = Session(key=fields["key"].encode(), digest_history_size=0)
            self._events.on_start()
        elif op == "died":
            self._events.on_death(fields["why"])
        elif op in ("listening", "call"):
            self.http.receive(op, fields, payload)
        return True
