"""Limits the kernel's messages to a size that the host can process. Delivered into the sandbox.

ipykernel merges the output of a loop of short prints into messages of 50 MB.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

from pytest_super.kernel.inside.frames import IOPUB, encode

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE = 256 * 2**10
# The longest text of a message other than a stream: a picture, a table, a traceback.
LONGEST_TEXT = 8 * 2**20
DELIMITER = b"<IDS|MSG>"


class Clipper:
    """Splits streams without loss and clips other messages. Signs the messages that it changes."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()

    def frames(self, channel: int, parts: list[bytes]) -> Iterator[bytes]:
        """The message as frames for the host: one frame, unless it is a long stream."""
        if sum(map(len, parts)) <= PIECE:
            return iter((encode(channel, parts),))
        start = parts.index(DELIMITER) + 2
        head, body = parts[: start - 1], parts[start : start + 4]
        content = json.loads(body[3].decode("utf-8", "replace"))
        # The caller keeps this list while the pieces are sent: free the long message that it contains.
        parts.clear()
        if channel == IOPUB and isinstance(content.get("text"), str) and "name" in content:
            return self._split(channel, head, body[:3], content)
        body[3] = dump(clip(content))
        return iter((self._sealed(channel, head, body),))

    def _split(
        self, channel: int, head: list[bytes], body: list[bytes], content: dict[str, Any]
    ) -> Iterator[bytes]:
        """Split one stream message. Each part has its own id, or equal parts would have equal signatures."""
        header, name = json.loads(body[0]), dump(content["name"])
        for number, text in enumerate(pieces(content["text"])):
            part = dict(header, msg_id=f"{header['msg_id']}.{number}")
            yield self._sealed(
                channel, head, [dump(part), *body[1:], b'{"name": %s, "text": %s}' % (name, text)]
            )

    def _sealed(self, channel: int, head: list[bytes], body: list[bytes]) -> bytes:
        signature = hmac.new(self._key, b"".join(body), hashlib.sha256).hexdigest().encode()
        return encode(channel, [*head, signature, *body])


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


def clip(value: Any) -> Any:
    """The value with each text shortened to LONGEST_TEXT characters and huge binary data removed."""
    if isinstance(value, dict):
        return {key: clip(child) for key, child in value.items() if not is_huge_binary(key, child)}
    if isinstance(value, list):
        return [clip(child) for child in value]
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        half = LONGEST_TEXT // 2
        return f"{value[:half]}\n[{len(value) - 2 * half} characters cut]\n{value[-half:]}"
    return value


def is_huge_binary(key: str, value: Any) -> bool:
    """Whether the value is a picture or other binary data that clipping would break."""
    return key.startswith(("image/", "application/", "video/", "audio/")) and len(str(value)) > LONGEST_TEXT
