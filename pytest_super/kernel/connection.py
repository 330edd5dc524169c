"""The host's end of the stream to a sandbox: frames in both directions and liveness checks."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from pytest_super.kernel.inside import frames

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_super.kernel.sandbox import Stream

READ_SIZE = 2**18
PING_SECONDS = 5.0
# A bridge that sends nothing for this long, not even a pong, hangs: we give its sandbox up.
SILENCE_SECONDS = 60.0
# The bridge gives us up after this time. A host process that is suspended (Ctrl-Z) for less finds it alive.
OWN_SILENCE_SECONDS = 300.0


class Connection:
    """Sends from any thread. One thread of its own receives and calls the handlers.

    A send blocks while the other side does not read; closing the stream ends it.
    """

    def __init__(
        self,
        stream: Stream,
        *,
        on_frame: Callable[[int, list[bytes]], None],
        on_end: Callable[[str], None],
    ) -> None:
        """`on_end` is called once: with our reason if we ended the stream, else with ""."""
        self._stream = stream
        self._on_frame = on_frame
        self._on_end = on_end
        self._sending = threading.Lock()
        self._ended = threading.Event()
        self._last_received = time.monotonic()
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
                self._last_received = time.monotonic()
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
        """Give up a silent sandbox. Not part of `_ping`, because a stopped bridge blocks every send."""
        while not self._ended.wait(PING_SECONDS):
            if time.monotonic() - self._last_received > SILENCE_SECONDS:
                self.give_up(f"the sandbox did not answer for {SILENCE_SECONDS:.0f} seconds")
                return
