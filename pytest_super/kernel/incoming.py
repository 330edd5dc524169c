"""The one door for what a sandbox sends: checks every frame and message before anything else sees it.

The schema is below. What does not fit is dropped and counted by its kind; the next result of a cell contains
the counts. Of a message that would be shown, a note is shown instead. Code inside can replace the bridge, so
nothing that arrives is known to come from it.
"""

from __future__ import annotations

import hmac
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_super.kernel.inside import frames
from pytest_super.kernel.schema import (
    LATEST,
    LONGEST_NAME,
    Misfit,
    bundle,
    flag,
    inner_path,
    line,
    listed,
    mapping,
    metadata,
    name,
    number,
    one_of,
    optional,
    pair,
    read_json,
    record,
    text,
    variant,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_super.kernel.schema import Type

# Bytes of a message's content; the bridge splits or clips what is longer.
LONGEST_MESSAGE = frames.LONGEST_MESSAGE
LONGEST_HEADER = 2**16
# Bytes of the fields of a control frame; and of all reports on processes in the life of a sandbox.
LONGEST_FIELDS = 2**18
MOST_REPORTED = 2**25
# Bytes of a piece of a file, and of a piece of an HTTP body.
CHUNK = 2**20
PIECE = 256 * 2**10
# Bytes of request bodies in memory at any time; also the most that one body can have.
MAX_BODIES = 16 * 2**20
LONGEST_PATH = 1000
MOST_HEADERS = 100
# Characters of a cause of death or an error, which code inside can choose, and of a file's name.
LONGEST_CAUSE = 500
LONGEST_FILE_NAME = 2**16
# Values in the list of a folder: 200,000 entries.
MOST_LISTED = 2**20


class Kind(NamedTuple):
    """A kind of control frame."""

    fields: Type
    payload: int = 0
    """The most bytes after its fields."""


COUNT, SECONDS, PATH, CAUSE = whole(), number(LATEST), name(LONGEST_FILE_NAME), line(LONGEST_CAUSE)
INNER_PATH = inner_path(LONGEST_FILE_NAME)
ID = whole(least=1)
NAMES = listed(PATH, 10_000)
KEY = text(LONGEST_NAME)

PROCESS = record(
    number=ID,
    pid=ID,
    arguments=NAMES,
    executable=optional(PATH),
    is_python=optional(flag),
    files=mapping(text(LONGEST_NAME), PATH, 10_000),
    repositories=optional(NAMES),
    only=optional(NAMES),
    changed=optional(flag),
    kept_lines=optional(number(1.0)),
    started=SECONDS,
    ended=optional(SECONDS),
    stopped=optional(SECONDS),
    status=optional(whole(2**32)),
    replaced=optional(flag),
)
CALL = variant(
    "what",
    {
        "ask": record(
            id=ID,
            what=text(LONGEST_NAME),
            method=text(LONGEST_PATH),
            path=text(LONGEST_PATH),
            size=whole(MAX_BODIES),
            headers=mapping(text(LONGEST_NAME), text(LONGEST_PATH), MOST_HEADERS),
        ),
        **{what: record(id=ID, what=text(LONGEST_NAME)) for what in ("body", "more", "gone")},
    },
)
CONTROL: dict[str, Kind] = {
    # The key is empty until a kernel starts.
    "hello": Kind(record(key=KEY, observes=optional(flag))),
    "pong": Kind(record()),
    "died": Kind(record(why=CAUSE)),
    "started": Kind(record(key=KEY)),
    "printed": Kind(record(id=ID), payload=CHUNK),
    "ended": Kind(record(id=ID, status=optional(whole(2**16)), error=optional(CAUSE))),
    "process": Kind(PROCESS),
    "observed": Kind(record()),
    "used": Kind(record(seconds=SECONDS)),
    "data": Kind(record(id=ID), payload=CHUNK),
    "more": Kind(record(id=ID)),
    "done": Kind(record(id=ID)),
    "failed": Kind(record(id=ID, errno=optional(whole(4095)), message=CAUSE)),
    "listening": Kind(record(port=optional(whole(65535, least=1)), error=optional(CAUSE))),
    "call": Kind(CALL, payload=PIECE),
}

# The answers about files, whose JSON texts arrive in pieces.
FILE_ANSWERS: dict[str, Type] = {
    "list": listed(
        record(
            name=PATH,
            kind=one_of("file", "folder", "link", "other"),
            size=COUNT,
            modified=number(LATEST, least=-LATEST),
        ),
        MOST_LISTED,
    ),
    "resolve": PATH,
    "digests": record(
        files=listed(
            record(name=INNER_PATH, is_executable=flag, size=COUNT, sha256=text(LONGEST_NAME)), MOST_LISTED
        ),
        is_complete=flag,
    ),
    "clock": number(LATEST),
    "changed": record(found=listed(pair(PATH, PATH), 10_000), is_complete=flag),
    "changes": optional(mapping(INNER_PATH, text(LONGEST_FILE_NAME), 1000)),
    "search": record(
        folder=PATH, found=listed(pair(PATH, COUNT), 10_000), files=COUNT, lines=COUNT, is_complete=flag
    ),
}

LONG_TEXT = text(LONGEST_MESSAGE)
DISPLAY = {
    "data": bundle,
    "metadata": optional(metadata(4096)),
    "transient": optional(record(display_id=optional(text(LONGEST_NAME)))),
}
ERROR = {"ename": text(LONGEST_NAME, is_clipped=True), "evalue": text(1000, is_clipped=True)}
VALUE = record(data=optional(record(**{"text/plain": optional(LONG_TEXT)})))
OUTPUT: dict[str, Type] = {
    "stream": record(name=one_of("stdout", "stderr"), text=LONG_TEXT),
    "display_data": record(**DISPLAY),
    "update_display_data": record(**DISPLAY),
    "execute_result": record(**DISPLAY, execution_count=optional(COUNT)),
    "error": record(**ERROR, traceback=listed(LONG_TEXT, 10_000)),
}
# Jupyter has more kinds of messages, which we do not use.
MESSAGES: dict[int, dict[str, Type]] = {
    frames.SHELL: {
        "kernel_info_reply": record(),
        "execute_reply": record(
            status=one_of("ok", "error", "abort", "aborted"),
            ename=optional(ERROR["ename"]),
            evalue=optional(ERROR["evalue"]),
            user_expressions=optional(record(value=optional(VALUE))),
        ),
    },
    frames.IOPUB: {
        **OUTPUT,
        "clear_output": record(wait=bool),
        "execute_input": record(),
        "status": record(execution_state=text(LONGEST_NAME)),
    },
}
HEADER = record(msg_type=text(LONGEST_NAME))
PARENT = record(msg_id=optional(text(LONGEST_NAME)))
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
            op = one_of(*CONTROL)(fields.get("op"))
            kind = op
            self._count_reports(op, len(parts[0]))
            if len(payload) > CONTROL[op].payload:
                raise Misfit("too long")
            return Control(op, CONTROL[op].fields(fields), payload)
        except Misfit:
            self.drop(kind)
            return None

    def message(
        self, channel: int, parts: list[bytes], sign: Callable[[list[bytes]], bytes]
    ) -> Message | None:
        """The message, with the fields of its schema; None if it is of no use.

        `sign` makes the signature that the four parts of a message should have.
        """
        try:
            header, parent, _, content = signed_parts(parts, sign)
            kind = HEADER(read_json(header))["msg_type"]
            cause = PARENT(read_json(parent))["msg_id"] or ""
        except Misfit:
            self.drop("unreadable")
            return None
        if kind not in MESSAGES[channel]:
            return None
        try:
            if len(content) > LONGEST_MESSAGE:
                raise Misfit("too long")
            return Message(channel, cause, kind, MESSAGES[channel][kind](read_json(content)))
        except Misfit as misfit:
            self.drop(kind)
            return note(cause, kind, misfit) if kind in OUTPUT else None

    def _count_reports(self, op: str, size: int) -> None:
        """Reports on processes are kept until the end of the trial."""
        if op == "process":
            self._reported += size
            if self._reported > MOST_REPORTED:
                raise Misfit("too many")


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


def note(parent: str, kind: str, misfit: Misfit) -> Message:
    """What is shown in place of a message that does not fit."""
    shown = {"text/plain": f"[{kind} left out: {misfit}]"}
    return Message(frames.IOPUB, parent, "display_data", {"data": shown, "metadata": None, "transient": None})


def file_answer(op: str, data: bytes) -> Any:
    """The answer to a question about files. Raises Misfit."""
    return FILE_ANSWERS[op](read_json(data, MOST_LISTED))
