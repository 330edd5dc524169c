"""What the reader thread makes of a sandbox's messages: the state that a Kernel's callers wait for."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.calls import CallChannel
from pytest_super.kernel.connection import Connection
from pytest_super.kernel.delivery import bridge_program
from pytest_super.kernel.files import FileChannel
from pytest_super.kernel.inside import frames
from pytest_super.kernel.output import CellOutput, output_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from jupyter_client.session import Session

    from pytest_super.kernel.running import RunningCell
    from pytest_super.kernel.sandbox import Stream

# How long an answered request's message on IOPub may take before we ask anew.
PROOF_SECONDS = 0.02
OUTPUT_KINDS = frozenset(
    ("stream", "display_data", "update_display_data", "execute_result", "error", "clear_output")
)


class KernelLink:
    """The kernel of one sandbox: its life, the cell that runs in it, the files beside it.

    `changed` guards all fields and is notified at every change. `death` says why the kernel died, `end` why
    the stream ended ("" where only the sandbox knows); both are None while it lives.
    """

    def __init__(
        self,
        stream: Stream,
        *,
        clock: Callable[[], float],
        lost: Callable[[], Exception],
        silence: float,
        own_silence: float,
        file_patience: float,
    ) -> None:
        """`lost` makes what file operations raise once the stream has ended; the others as in Connection."""
        self.changed = threading.Condition()
        self.cell: RunningCell | None = None
        self.death: str | None = None
        self.end: str | None = None
        # What earlier cells put out between cells: background processes and threads.
        self.leftover = CellOutput()
        self._clock = clock
        self._session: Session | None = None
        self._listeners: dict[str, Callable[[str], None] | None] = {}
        self._listener_error: Exception | None = None
        self._info_ids: set[str] = set()
        self._answers = 0
        self._is_proven = False
        self._connection = Connection(
            stream,
            on_frame=self._on_frame,
            on_end=self._on_end,
            silence=silence,
            own_silence=own_silence,
        )
        self.calls = CallChannel(self._connection.tell, lost=lost)
        self.files = FileChannel(
            self._connection.tell, lost=lost, give_up=self._connection.give_up, patience=file_patience
        )

    def start(self) -> None:
        self._connection.start()
        self._connection.send_bytes(bridge_program())
        # Now, while the kernel starts: it costs 0.1 s.
        import jupyter_client.session  # noqa: F401

    def close(self) -> None:
        self._connection.close()

    # Requests. The caller holds `changed`.

    def request(self, cell: RunningCell) -> None:
        """Run the cell; in a sandbox that has ended it ends at once."""
        self.cell = cell
        if self.end is not None:
            return
        new_id = self._send("execute_request", cell.request())
        self._listeners[new_id] = cell.listener
        cell.ask_again(new_id)

    def probe(self) -> None:
        """Ask for something, so that the handling of it shows that the cell is over."""
        if self.cell is not None and not self.cell.probe_id:
            self.cell.probe_id = self._send("kernel_info_request", {})

    def interrupt(self) -> None:
        self._connection.tell("interrupt")

    def restart(self) -> None:
        self._session, self.death, self._is_proven = None, None, False
        self._connection.tell("restart")

    def _send(self, kind: str, content: dict[str, Any]) -> str:
        if self._session is None:
            raise RuntimeError("the kernel was not started")
        message = self._session.msg(kind, content)
        self._connection.send(frames.SHELL, self._session.serialize(message))
        return str(message["header"]["msg_id"])

    def await_ready(self, seconds: float) -> None:
        """Return when a request was answered and its message came on IOPub: so will those of cells.

        The answer alone proves nothing: the subscription may not have arrived yet, and what is published
        before is lost without a trace. Raises InfrastructureError.
        """
        deadline = time.monotonic() + seconds
        with self.changed:
            self._await_start(lambda: self._session is not None, deadline)
            while not self._is_proven:
                before = self._answers
                self._info_ids.add(self._send("kernel_info_request", {}))
                self._await_start(partial(self._has_answered, before), deadline)
                self.changed.wait_for(lambda: self._is_proven, PROOF_SECONDS)

    def _has_answered(self, before: int) -> bool:
        return self._answers > before

    def _await_start(self, condition: Callable[[], bool], deadline: float) -> None:
        def settled() -> bool:
            return condition() or self.death is not None or self.end is not None

        if not self.changed.wait_for(settled, deadline - time.monotonic()):
            raise InfrastructureError("the kernel in the sandbox did not start in time")
        if self.death is not None:
            raise InfrastructureError(f"the kernel in the sandbox did not start: {self.death}")
        if self.end is not None:
            raise InfrastructureError(f"the sandbox ended before its kernel was ready {self.end}".rstrip())

    def take_leftover(self) -> CellOutput:
        with self.changed:
            taken, self.leftover = self.leftover, CellOutput()
            return taken

    def tell_leftover(self, listener: Callable[[str], None], leftover: CellOutput) -> None:
        """Give what came between cells to the listener of the next, which shows it."""
        text = "".join(map(output_text, leftover.outputs()))
        if text:
            self._tell_listener(listener, text)

    def raise_listener_error(self) -> None:
        error, self._listener_error = self._listener_error, None
        if error is not None:
            raise error

    # Messages, in the reader thread

    def _on_end(self, why: str) -> None:
        with self.changed:
            self.end = why
            self._stop_cell()
        self.files.end()
        self.calls.end()

    def _stop_cell(self) -> None:
        if self.cell is not None:
            self.cell.stop(self._clock())
        self.changed.notify_all()

    def _on_frame(self, channel: int, parts: list[bytes]) -> None:
        if channel == frames.CONTROL:
            fields, payload = frames.decode_control(parts)
            self._on_control(fields, payload)
        elif channel in (frames.SHELL, frames.IOPUB):
            message = self._parse(parts)
            if message is not None:
                self._on_message(channel, message)

    def _on_control(self, fields: dict[str, Any], payload: bytes) -> None:
        op = fields["op"]
        if op in ("hello", "restarted"):
            self._introduce(str(fields.get("key")))
        elif op == "died":
            with self.changed:
                self.death = cause_of_death(fields)
                self._stop_cell()
        elif op in ("data", "more", "done", "failed"):
            self.files.answer(fields, payload)
        elif op in ("listening", "call"):
            self.calls.hear(fields, payload)

    def _introduce(self, key: str) -> None:
        from jupyter_client.session import Session

        with self.changed:
            # Replays are no danger in a stream of our own, and remembering them costs time.
            self._session = Session(key=key.encode(), digest_history_size=0)
            self._info_ids.clear()
            self.changed.notify_all()

    def _parse(self, parts: list[bytes]) -> dict[str, Any] | None:
        """The message, or None where it is none: code inside can write what it likes."""
        if self._session is None:
            return None
        try:
            _, body = self._session.feed_identities(parts)
            message = self._session.deserialize(body)
        except Exception:
            return None
        is_sound = isinstance(message.get("content"), dict) and isinstance(message.get("parent_header"), dict)
        return message if is_sound else None

    def _on_message(self, channel: int, message: dict[str, Any]) -> None:
        parent = str(message["parent_header"].get("msg_id", ""))
        kind, content = message["msg_type"], message["content"]
        if channel == frames.IOPUB and kind in OUTPUT_KINDS:
            self._put_out(parent, kind, content)
            return
        with self.changed:
            if parent in self._info_ids:
                self._is_proven |= channel == frames.IOPUB
                self._answers += channel == frames.SHELL
            elif self.cell is not None:
                self._move_on(self.cell, parent, channel, kind, content)
            self.changed.notify_all()

    def _move_on(
        self, cell: RunningCell, parent: str, channel: int, kind: str, content: dict[str, Any]
    ) -> None:
        if parent == cell.id and kind == "execute_input":
            cell.began()
        elif parent == cell.id and kind == "execute_reply" and channel == frames.SHELL:
            cell.replied(content, self._clock())
        elif parent == cell.id and kind == "status" and content.get("execution_state") == "idle":
            cell.became_idle(self._clock())
        elif parent == cell.probe_id and channel == frames.IOPUB:
            cell.probe_began(self._clock())
        elif parent == cell.probe_id and channel == frames.SHELL:
            cell.probe_answered(self._clock())

    def _put_out(self, parent: str, kind: str, content: dict[str, Any]) -> None:
        """To the cell that it comes from; what earlier ones put out, to the one that runs or comes next.

        The listener is that of the cell that it comes from; for the one that comes next, see `tell_leftover`.
        """
        with self.changed:
            cell, listener = self.cell, self._listeners.get(parent)
            if cell is not None and parent == cell.id:
                text = cell.put_out(kind, content)
            elif parent not in self._listeners or kind in ("clear_output", "error"):
                return
            elif cell is None:
                self.leftover.add(kind, content)
                return
            else:
                text = cell.output.add(kind, content)
        if listener is not None and text:
            self._tell_listener(listener, text)

    def _tell_listener(self, listener: Callable[[str], None], text: str) -> None:
        try:
            listener(text)
        except Exception as error:
            self._listener_error = error


def cause_of_death(fields: dict[str, Any]) -> str:
    """Why the kernel died, as a person would say it."""
    if fields.get("out_of_memory") is True:
        return "out of memory"
    words = str(fields.get("stderr") or "").strip()
    last = f": {words.splitlines()[-1][:500]}" if words else ""
    if isinstance(fields.get("signal"), int):
        return f"killed by signal {fields['signal']}{last}"
    if isinstance(fields.get("code"), int):
        return f"exit code {fields['code']}{last}"
    return last.removeprefix(": ") or "unknown cause"
