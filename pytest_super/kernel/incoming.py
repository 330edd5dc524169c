"""The one door for what a sandbox sends: checks every frame and message before anything else sees it.

What does not fit the schema is dropped and counted by its kind; the next result of a cell contains the
counts. Of a message that would be shown, a note is shown instead. Code inside can replace the bridge, so
nothing that arrives is known to come from it.
"""

import hmac
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from pytest_super.kernel import schema
from pytest_super.kernel.inside import frames
from pytest_super.kernel.value_types import Misfit, one_of, read_json

# Bytes of a message's header, and of the fields of a control frame.
LONGEST_HEADER = 2**16
LONGEST_FIELDS = 2**18
# Bytes of all reports on processes in the life of a sandbox.
MOST_REPORTED = 2**25
DELIMITER = b"<IDS|MSG>"


class Control(NamedTuple):
    """A control frame."""

    op: str
    fields: dict[str, Any]
    payload: bytes


class Message(NamedTuple):
    """One Jupyter message of the kernel."""

    channel: int
    """`frames.SHELL` or `frames.IOPUB`."""
    parent: str
    """The id of the request that caused the message."""
    kind: str
    content: dict[str, Any]


class Incoming:
    """Checks what arrives, and counts what is dropped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._dropped: Counter[str] = Counter()
        self._reported = 0

    def drop(self, kind: str) -> None:
        with self._lock:
            self._dropped[kind] += 1

    def take_dropped(self) -> dict[str, int]:
        """How many frames and messages of each kind were dropped since the last call."""
        with self._lock:
            taken, self._dropped = self._dropped, Counter()
        return dict(taken)

    def control(self, parts: list[bytes]) -> Control | None:
        """The control frame; None if it does not fit."""
        kind = "unreadable"
        try:
            fields, payload = control_parts(parts)
            kind = "unknown"
            op = one_of(*schema.CONTROL)(fields.get("op"))
            kind = op
            # Reports on processes are kept until the end of the trial.
            self._reported += len(parts[0]) if op == "process" else 0
            if op == "process" and self._reported > MOST_REPORTED:
                raise Misfit("too many")
            if len(payload) > schema.CONTROL[op].payload:
                raise Misfit("too long")
            return Control(op, schema.CONTROL[op].fields(fields), payload)
        except Misfit:
            self.drop(kind)
            return None

    def message(
        self, channel: int, parts: list[bytes], sign: Callable[[list[bytes]], bytes]
    ) -> Message | None:
        """The message, with the fields of its schema, if `sign` signs it so; None if it is of no use."""
        try:
            header, parent, _, content = signed_parts(parts, sign)
            kind = schema.HEADER(read_json(header))["msg_type"]
            cause = schema.PARENT(read_json(parent))["msg_id"] or ""
        except Misfit:
            self.drop("unreadable")
            return None
        if kind not in schema.MESSAGES[channel]:
            return None
        try:
            if len(content) > schema.LONGEST_MESSAGE:
                raise Misfit("too long")
            return Message(channel, cause, kind, schema.MESSAGES[channel][kind](read_json(content)))
        except Misfit as misfit:
            self.drop(kind)
            if kind not in schema.OUTPUT:
                return None
            note = {"text/plain": f"[{kind} left out: {misfit}]"}
            display = {"data": note, "metadata": None, "transient": None}
            return Message(frames.IOPUB, cause, "display_data", display)


def control_parts(parts: list[bytes]) -> tuple[dict[str, Any], bytes]:
    if len(parts) != 2 or len(parts[0]) > LONGEST_FIELDS:
        raise Misfit("not a control frame")
    fields = read_json(parts[0])
    if not isinstance(fields, dict):
        raise Misfit("not a control frame")
    return fields, parts[1]


def signed_parts(parts: list[bytes], sign: Callable[[list[bytes]], bytes]) -> list[bytes]:
    """Header, parent header, metadata and content of a message, without its buffers."""
    if DELIMITER not in parts:
        raise Misfit("without a delimiter")
    signature, *body = parts[parts.index(DELIMITER) + 1 :][:5] or [b""]
    if len(body) != 4 or max(len(body[0]), len(body[1])) > LONGEST_HEADER:
        raise Misfit("not a message")
    if not hmac.compare_digest(signature, sign(body)):
        raise Misfit("not signed by the kernel")
    return body


def file_answer(op: str, data: bytes) -> Any:
    """The answer to a question about files. Raises Misfit."""
    return schema.FILE_ANSWERS[op](read_json(data, schema.MOST_LISTED))
