"""A sandbox without processes: a bridge that a test scripts, message by message."""

import queue
import threading
from collections.abc import Callable
from typing import Any

from jupyter_client.session import Session

from pytest_super.kernel.delivery import bridge_program
from pytest_super.kernel.inside import frames
from pytest_super.kernel.sandbox import Capabilities

Script = Callable[["ScriptedBridge", dict[str, Any]], None]

KEY = "key"


class ScriptedBridge:
    """A Stream. Answers requests for information as a kernel does.

    `on_execute(bridge, request)` answers cells, with `reply`, `publish`, `idle` and `tell`; `on_file` answers
    requests for files, at first as if all were empty. `requests` holds each execute_request. Once `stop` was
    called every write blocks, until the stream is closed.
    """

    def __init__(self, on_execute: Script) -> None:
        self.session = Session(key=KEY.encode())
        self.requests: list[dict[str, Any]] = []
        self.on_info: Script = answer_info
        self.on_file: Script = answer_done
        self.has_blocked = threading.Event()
        self._is_stopped = False
        self._closed = threading.Event()
        self._on_execute = on_execute
        self._outgoing: queue.Queue[bytes] = queue.Queue()
        self._program_left = len(bridge_program())
        self._decoder = frames.Decoder()

    # The stream

    def read(self, size: int) -> bytes:
        data = self._outgoing.get()
        if not data:
            self._outgoing.put(b"")
        assert len(data) <= size
        return data

    def write(self, data: bytes) -> None:
        if self._is_stopped:
            self.has_blocked.set()
            self._closed.wait()
            raise BrokenPipeError
        rest = data[self._program_left :]
        if self._program_left:
            self._program_left -= len(data) - len(rest)
            self.tell("hello", key=KEY)
        for channel, parts in self._decoder.feed(rest):
            self._hear(channel, parts)

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    def close(self) -> None:
        self._closed.set()
        self._outgoing.put(b"")

    # The script

    def stop(self) -> None:
        self._is_stopped = True

    def _hear(self, channel: int, parts: list[bytes]) -> None:
        if channel == frames.CONTROL:
            self._obey(frames.decode_control(parts)[0])
            return
        _, body = self.session.feed_identities(parts)
        request = self.session.deserialize(body)
        if request["msg_type"] == "execute_request":
            self.requests.append(request)
            self._on_execute(self, request)
        else:
            self.on_info(self, request)

    def _obey(self, fields: dict[str, Any]) -> None:
        if fields["op"] == "restart":
            self.tell("started", key=KEY)
        elif "path" in fields:
            self.on_file(self, fields)

    def send(self, data: bytes) -> None:
        self._outgoing.put(data)

    def tell(self, op: str, payload: bytes = b"", **fields: Any) -> None:
        self.send(frames.encode_control(op, payload, **fields))

    def publish(
        self, request: dict[str, Any] | None, kind: str, channel: int = frames.IOPUB, **content: Any
    ) -> None:
        message = self.session.msg(kind, content, parent=request)
        self.send(frames.encode(channel, self.session.serialize(message, ident=b"topic")))

    def reply(self, request: dict[str, Any], status: str = "ok", **content: Any) -> None:
        self.publish(request, "execute_reply", frames.SHELL, status=status, **content)

    def idle(self, request: dict[str, Any], state: str = "idle") -> None:
        self.publish(request, "status", execution_state=state)


def answer_info(bridge: ScriptedBridge, request: dict[str, Any]) -> None:
    bridge.idle(request, "busy")
    bridge.publish(request, "kernel_info_reply", frames.SHELL, status="ok")


def answer_done(bridge: ScriptedBridge, request: dict[str, Any]) -> None:
    bridge.tell("done", id=request["id"])


class ScriptedSandbox:
    capabilities = Capabilities()
    workdir = "/scripted"

    def __init__(self, bridge: ScriptedBridge, death: Exception | str = "it was turned off") -> None:
        self.bridge = bridge
        self._death = death

    def open(self) -> ScriptedBridge:
        return self.bridge

    def cause_of_death(self) -> str:
        if isinstance(self._death, Exception):
            raise self._death
        return self._death

    def keep(self) -> str:
        return "cd /scripted"

    def close(self) -> None:
        pass
