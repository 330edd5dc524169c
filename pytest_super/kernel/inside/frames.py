"""The frames of the byte stream between host and sandbox. Delivered into the sandbox too.

A frame is a channel (one byte), the length of its body (four bytes, big-endian) and the body. The body is a
sequence of parts, each after its own length. SHELL and IOPUB carry Jupyter's signed messages unchanged.
CONTROL carries our own: a JSON object with `op`, then at most one part of bytes. `bridge` handles
those to the sandbox, `schema.CONTROL` lists those to the host.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

CONTROL, SHELL, IOPUB = range(3)
# Bytes of a message's content. The bridge splits streams into pieces and clips other messages.
LONGEST_MESSAGE = 16 * 2**20
# Both sides stay below this: files are sent in chunks.
MAX_FRAME = 24 * 2**20
MAX_PARTS = 100
FRAME = struct.Struct(">BI")
LENGTH = struct.Struct(">I")


class BrokenFrame(ValueError):
    """The bytes are not a frame, so the other side is not our code."""


def encode(channel: int, parts: list[bytes]) -> bytes:
    body = b"".join(LENGTH.pack(len(part)) + part for part in parts)
    return FRAME.pack(channel, len(body)) + body


def encode_control(op: str, payload: bytes = b"", **fields: Any) -> bytes:
    return encode(CONTROL, [json.dumps({"op": op, **fields}).encode(), payload])


def decode_control(parts: list[bytes]) -> tuple[dict[str, Any], bytes]:
    """The fields and the bytes of a control frame of the host, which needs no check."""
    return json.loads(parts[0]), parts[1]


class Decoder:
    """Decodes frames from bytes that arrive in pieces of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, list[bytes]]]:
        """Each frame that `data` completes, as channel and parts. Raises BrokenFrame."""
        self._buffer += data
        while len(self._buffer) >= FRAME.size:
            channel, size = FRAME.unpack_from(self._buffer)
            # Checked before the body arrives, so that the other side cannot fill our memory.
            if channel > IOPUB or size > MAX_FRAME:
                raise BrokenFrame(f"a frame for channel {channel} of {size} bytes")
            end = FRAME.size + size
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[FRAME.size : end])
            del self._buffer[:end]
            yield channel, split(body)


def split(body: bytes) -> list[bytes]:
    parts: list[bytes] = []
    start = 0
    while start < len(body):
        if len(parts) == MAX_PARTS or len(body) - start < LENGTH.size:
            raise BrokenFrame("too many parts, or one without length")
        (size,) = LENGTH.unpack_from(body, start)
        start += LENGTH.size
        if start + size > len(body):
            raise BrokenFrame("a part that is longer than its frame")
        parts.append(body[start : start + size])
        start += size
    return parts
