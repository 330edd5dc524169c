"""Limits the kernel's messages to a size that the host can process. Delivered into the sandbox.

ipykernel merges the output of a loop of short prints into messages of 50 MB.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any

from pytest_super.kernel.inside.frames import IOPUB, LONGEST_MESSAGE, MAX_PARTS, encode

PIECE = 256 * 2**10
# The longest text of a message other than a stream: a picture, a table, a traceback.
LONGEST_TEXT = 8 * 2**20
# Numbers and texts in a chart. The host refuses messages with twice as many. We parse more, to clip them, but
# not without end: an empty object takes 24 times as much memory as its text.
MOST_VALUES = 2**18
MOST_PARSED = 2**21
DELIMITER = b"<IDS|MSG>"


class Clipper:
    """Splits streams without loss and clips other messages. Signs the messages that it changes."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()

    def frames(self, channel: int, parts: list[bytes]) -> Iterator[bytes]:
        """The message as frames for the host: one frame, unless it is a long stream.

        Without the buffers of widgets, which the host does not use. It counts an empty frame as unreadable.
        """
        start = parts.index(DELIMITER) + 2 if DELIMITER in parts else 0
        del parts[start + 4 :]
        if sum(map(len, parts)) <= PIECE:
            return iter((encode(channel, parts if len(parts) < MAX_PARTS else []),))
        head, body = parts[: start - 1], parts[start:]
        # The caller keeps this list while the pieces are sent: free the long message that it contains.
        parts.clear()
        try:
            return self._shortened(channel, head, body)
        except (LookupError, TypeError, ValueError, RecursionError):
            return iter((encode(channel, []),))

    def _shortened(self, channel: int, head: list[bytes], body: list[bytes]) -> Iterator[bytes]:
        if sum(map(len, head + body[:3])) > PIECE or len(head) > MAX_PARTS // 2:
            raise ValueError("not a message")
        if has_more_values(body[3], MOST_PARSED):
            raise ValueError("too many values")
        header, content = json.loads(body[0]), json.loads(body.pop().decode("utf-8", "replace"))
        if channel == IOPUB and header["msg_type"] == "stream" and isinstance(content["text"], str):
            return self._split(head, header, body[1:], content)
        return iter((self._sealed(channel, head, [*body, clipped(content)]),))

    def _split(
        self, head: list[bytes], header: dict[str, Any], others: list[bytes], content: dict[str, Any]
    ) -> Iterator[bytes]:
        """Split one stream message. Each part has its own id, or equal parts would have equal signatures."""
        for number, text in enumerate(pieces(content["text"])):
            part = dump(dict(header, msg_id=f"{header.get('msg_id')}.{number}"))
            shown = b'{"name": %s, "text": %s}' % (dump(content.get("name"))[:PIECE], text)
            yield self._sealed(IOPUB, head, [part, *others, shown])

    def _sealed(self, channel: int, head: list[bytes], body: list[bytes]) -> bytes:
        signature = hmac.new(self._key, b"".join(body), hashlib.sha256).hexdigest().encode()
        return encode(channel, [*head, signature, *body])


def has_more_values(data: bytes, most: int) -> bool:
    """Whether the JSON text can have more values. Known before it is parsed, which takes the memory."""
    if separators(data) <= most:
        return False
    bare = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return bare.count(b'"') > 4 * most or separators(b"".join(bare.split(b'"')[::2])) > most


def separators(data: bytes) -> int:
    return sum(map(data.count, (b",", b"[", b"{")))


def pieces(text: str) -> Iterator[bytes]:
    """The text as JSON strings of less than PIECE bytes each, whatever escapes its characters need."""
    size = PIECE - 4096
    start = 0
    while start < len(text):
        length = size
        while len(piece := dump(text[start : start + length])) > size:
            length = length * 3 // 4
        yield piece
        start += length


def dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def clipped(content: Any) -> bytes:
    """The content as JSON of at most LONGEST_MESSAGE bytes; an empty object if shorter texts do not help."""
    for longest in (LONGEST_TEXT, LONGEST_TEXT // 64, LONGEST_TEXT // 4096):
        if len(data := dump(clip(content, longest))) <= LONGEST_MESSAGE:
            return data
    return b"{}"


def clip(value: Any, longest: int) -> Any:
    """The value with each text shortened to `longest` characters and larger binary data removed."""
    if isinstance(value, dict):
        return {key: clip(child, longest) for key, child in value.items() if not is_huge(key, child, longest)}
    if isinstance(value, list):
        return [clip(child, longest) for child in value]
    if isinstance(value, str) and len(value) > longest:
        half = longest // 2
        return f"{value[:half]}\n[{len(value) - 2 * half} characters cut]\n{value[-half:]}"
    return value


def is_huge(key: str, value: Any, longest: int) -> bool:
    """Whether the value is a picture, a chart or other data that clipping would break."""
    if not key.startswith(("image/", "application/", "video/", "audio/")):
        return False
    text = str(value)
    return len(text) > longest or (text is not value and text.count(",") > MOST_VALUES)
