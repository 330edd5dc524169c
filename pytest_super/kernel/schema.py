"""The schema of what a sandbox sends: control frames, answers about files, and Jupyter messages."""

from typing import NamedTuple

from pytest_super.kernel.inside import frames
from pytest_super.kernel.value_types import (
    LATEST,
    LONGEST_NAME,
    Type,
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
    record,
    text,
    variant,
    whole,
)

# Bytes of a message's content; the bridge splits or clips what is longer.
LONGEST_MESSAGE = frames.LONGEST_MESSAGE
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
SHORT = text(LONGEST_NAME)

PROCESS = record(
    number=ID,
    pid=ID,
    arguments=NAMES,
    executable=optional(PATH),
    is_python=optional(flag),
    files=mapping(SHORT, PATH, 10_000),
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
            what=SHORT,
            method=text(LONGEST_PATH),
            path=text(LONGEST_PATH),
            size=whole(MAX_BODIES),
            headers=mapping(SHORT, text(LONGEST_PATH), MOST_HEADERS),
        ),
        **{what: record(id=ID, what=SHORT) for what in ("body", "more", "gone")},
    },
)
CONTROL: dict[str, Kind] = {
    # The key is empty until a kernel starts.
    "hello": Kind(record(key=SHORT, observes=optional(flag))),
    "pong": Kind(record()),
    "died": Kind(record(why=CAUSE)),
    "started": Kind(record(key=SHORT)),
    "printed": Kind(record(id=ID), payload=CHUNK),
    "ended": Kind(record(id=ID, status=optional(whole(2**16)), error=optional(CAUSE))),
    "process": Kind(PROCESS),
    "observed": Kind(record(hung_up=CAUSE, reading=CAUSE)),
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
        files=listed(record(name=INNER_PATH, is_executable=flag, size=COUNT, sha256=SHORT), MOST_LISTED),
        is_complete=flag,
    ),
    "clock": number(LATEST),
    "memory_kills": COUNT,
    "changed": record(found=listed(pair(PATH, PATH), 10_000), is_complete=flag),
    "changes": optional(mapping(INNER_PATH, text(LONGEST_FILE_NAME), 1000)),
    "search": record(
        folder=PATH, found=listed(pair(PATH, COUNT), 10_000), files=COUNT, lines=COUNT, is_complete=flag
    ),
}

LONG_TEXT = text(LONGEST_MESSAGE)
DISPLAY = {
    "data": bundle,
    "metadata": optional(metadata),
    "transient": optional(record(display_id=optional(SHORT))),
}
ERROR = {"ename": text(LONGEST_NAME, is_clipped=True), "evalue": text(1000, is_clipped=True)}
VALUE = record(data=optional(record(**{"text/plain": optional(LONG_TEXT)})), evalue=optional(ERROR["evalue"]))
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
            payload=optional(listed(record(source=optional(SHORT), keepkernel=optional(flag)), 10_000)),
        ),
    },
    frames.IOPUB: {
        **OUTPUT,
        "clear_output": record(wait=bool),
        "execute_input": record(),
        "status": record(execution_state=SHORT),
    },
}
HEADER = record(msg_type=SHORT)
PARENT = record(msg_id=optional(SHORT))
