"""How workers in other places ask the run's gateway: over the channels that execnet has for them anyway.

Each call is a channel of its own. The answer is the lines of `wire`, and these:

    {"up": …}      before each try, the controller's Gateway.downtime
    {"failed": …}  why the gateway gives no answer, and whether that `is_final`

The worker opens no socket and no port that code in its sandboxes could connect to.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from pytest_super.model.completion import ModelError
from pytest_super.model.gateway_process import LAST, Gateway, Hear, Left, Line, Opened, temporary_folder
from pytest_super.model.settings import ModelSettings
from pytest_super.platform import host
from pytest_super.store.json_lines import to_line

if TYPE_CHECKING:
    from execnet import Channel
    from execnet import Gateway as Node

UP, FAILED = "up", "failed"


def place() -> str:
    """Processes in the same place see the same sockets: one machine, one folder of temporary files."""
    status = temporary_folder().stat()
    return f"{host().host_id()}/{status.st_dev}/{status.st_ino}"


class RelayedGateway:
    """The connection of a worker to the gateway of its run, which only the controller reaches."""

    def __init__(self, settings: ModelSettings, controller: Channel) -> None:
        self.settings = settings
        self._controller = controller
        self._lock = threading.Lock()
        self._began: dict[Channel, float] = {}
        """When the calls under way did."""
        self._told = 0.0
        self.downtime = 0.0
        """Seconds for which gateways started, or were replaced, while this process waited for them."""

    def start(self) -> None:
        """Let the controller start the gateway, unless it runs already."""
        # If that fails, so does the first call.
        with suppress(OSError):
            self._controller.send(None)

    def ask(self, request: Line, body: bytes, left: Left, hear: Hear, opened: Opened) -> Line:
        """The same as Gateway.ask."""
        try:
            with self._call() as channel:
                opened(channel.close)
                self._controller.send((channel, to_line(request).encode(), body))
                try:
                    return self._answer(channel, left, hear)
                except EOFError:
                    # If the call was broken off, this raises.
                    opened(channel.close)
                    raise
        except (OSError, EOFError):
            raise ModelError("the connection with the controller of the run broke") from None

    @contextmanager
    def _call(self) -> Iterator[Channel]:
        channel = self._controller.gateway.newchannel()
        with self._lock:
            self._began[channel] = monotonic()
        try:
            yield channel
        finally:
            with self._lock:
                del self._began[channel]
            channel.close()

    def _answer(self, channel: Channel, left: Left, hear: Hear) -> Line:
        while True:
            try:
                line = json.loads(channel.receive(left()))
            except channel.TimeoutError:
                # `left` raises.
                continue
            if FAILED in line:
                raise ModelError(line[FAILED], is_final=line["is_final"])
            if LAST in line:
                answer: Line = line[LAST]
                return answer
            if UP in line:
                # What is new of the controller's downtime, as far as a call of this process was under way.
                with self._lock:
                    before, self._told = self._told, max(self._told, line[UP])
                    self.downtime += min(self._told - before, monotonic() - min(self._began.values()))
            else:
                hear(line)

    def close(self) -> None:
        """The controller releases the gateway."""


AnyGateway = Gateway | RelayedGateway


class WorkerLeft(Exception):
    """A worker has broken its call off, or died."""


class Relay:
    """The controller's side of one worker: `channel` is to be sent to it, for a RelayedGateway."""

    def __init__(self, node: Node, gateway: Callable[[], AnyGateway]) -> None:
        """`gateway` starts it, and is called in threads, when the worker needs it. It raises ModelError."""
        self._gateway = gateway
        # Held here: execnet forgets a channel that nobody holds, but not its callback.
        self.channel = node.newchannel()
        self.channel.setcallback(self._accept)

    def _accept(self, asked: tuple[Channel, bytes, bytes] | None) -> None:
        # Not in this thread, in which execnet receives everything that the worker sends.
        act = self._start if asked is None else partial(self._serve, *asked)
        threading.Thread(target=act, daemon=True).start()

    def _start(self) -> None:
        # What is wrong is said to the first call.
        with suppress(ModelError):
            self._gateway()

    def _serve(self, channel: Channel, request: bytes, body: bytes) -> None:
        with suppress(WorkerLeft, OSError), closing(channel):
            call = RelayedCall(channel)
            try:
                call.send({LAST: call.ask(self._gateway(), json.loads(request), body)})
            except ModelError as error:
                call.send({FAILED: str(error), "is_final": error.is_final})


class RelayedCall:
    """A call of a worker, in the controller."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._break_off: Callable[[], None] = lambda: None
        self._has_left = False
        channel.setcallback(lambda _: self._leave(), endmarker=None)

    def _leave(self) -> None:
        self._has_left = True
        self._break_off()

    def ask(self, gateway: AnyGateway, request: Line, body: bytes) -> Line:
        """Raises ModelError and WorkerLeft."""

        def opened(break_off: Callable[[], None]) -> None:
            # Set before the check: a worker that leaves in between must not be missed.
            self._break_off = break_off
            if self._has_left:
                raise WorkerLeft
            self.send({UP: gateway.downtime})

        # The worker knows how long it waits.
        return gateway.ask(request, body, lambda: inf, self.send, opened)

    def send(self, line: Line) -> None:
        """Raises WorkerLeft."""
        try:
            self._channel.send(to_line(line).encode())
        except OSError:
            # An OSError would mean that the gateway has died: the call would be made, and paid, once more.
            raise WorkerLeft from None
