"""Frames, and the sizes of the messages in them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jupyter_client.session import Session

from pytest_super.kernel.incoming import Incoming
from pytest_super.kernel.inside import frames, message_size
from pytest_super.kernel.inside.message_size import LONGEST_TEXT, PIECE, Clipper, pieces

MESSAGES = st.lists(st.tuples(st.integers(0, 2), st.lists(st.binary(max_size=50), max_size=5)), max_size=8)


@given(MESSAGES, st.integers(1, 40))
def test_frames_come_back_whatever_the_chunks(messages: list[tuple[int, list[bytes]]], size: int) -> None:
    data = b"".join(frames.encode(channel, parts) for channel, parts in messages)
    decoder = frames.Decoder()
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert [frame for chunk in chunks for frame in decoder.feed(chunk)] == messages


@given(st.binary(max_size=200))
def test_any_bytes_are_frames_or_refused(data: bytes) -> None:
    try:
        decoded = list(frames.Decoder().feed(data))
    except frames.BrokenFrame:
        return
    assert sum(len(part) for _, parts in decoded for part in parts) <= len(data)


@pytest.mark.parametrize(
    "text", ["x" * 10**6, "é€😀" * 10**5, '"\\\n' * 10**5, "\x00" * 10**6, "\ud800" * 10**5]
)
def test_pieces_are_small_and_make_the_whole(text: str) -> None:
    parts = list(pieces(text))
    assert "".join(map(json.loads, parts)) == text.replace("\ud800", "?")
    assert max(map(len, parts)) <= PIECE


def sent(kind: str, content: dict[str, Any], channel: int = frames.IOPUB) -> list[dict[str, Any]]:
    """What the host gets of a message of the kernel's."""
    session = Session(key=b"key")
    parts = session.serialize(session.msg(kind, content), ident=b"topic")
    host, decoder = Session(key=b"key"), frames.Decoder()
    received = []
    for frame in Clipper("key").frames(channel, parts):
        for _, body in decoder.feed(frame):
            assert len(frame) < LONGEST_TEXT * 2
            received.append(host.deserialize(host.feed_identities(body)[1]))
    return received


def test_a_short_stream_comes_as_it_is_and_a_long_one_as_many_signed_messages() -> None:
    (message,) = sent("stream", {"name": "stdout", "text": "short"})
    assert message["content"] == {"name": "stdout", "text": "short"}
    text = "line\n" * 10**6
    received = sent("stream", {"name": "stderr", "text": text})
    assert len(received) > 10
    assert "".join(message["content"]["text"] for message in received) == text
    assert {message["content"]["name"] for message in received} == {"stderr"}


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proportions of the real limits, and less work."""
    for name, limit in (("LONGEST_TEXT", 2**17), ("LONGEST_MESSAGE", 2**18), ("MOST_VALUES", 2**14)):
        monkeypatch.setattr(message_size, name, limit)


@pytest.mark.usefixtures("small_limits")
def test_a_huge_display_or_reply_loses_its_picture_and_the_middle_of_its_text() -> None:
    data = {"text/plain": "t" * 2**19, "image/png": "A" * 2**19, "text/html": "<b>"}
    (message,) = sent("display_data", {"data": data, "metadata": {}})
    assert message["content"]["data"].keys() == {"text/plain", "text/html"}
    assert "characters cut" in message["content"]["data"]["text/plain"]
    error = {"status": "error", "ename": "E", "evalue": "v" * 2**19, "traceback": []}
    (message,) = sent("execute_reply", error, frames.SHELL)
    assert len(message["content"]["evalue"]) < 2**17 + 100


@pytest.mark.parametrize(
    "content",
    [
        {"data": {f"image/{number}": "A" * 2**18 for number in range(12)}},
        {"data": {f"text/{number}": "\0" * 2**18 for number in range(3)}},
        {"data": {"application/json": [0] * 10**5, "text/plain": "chart"}},
        {"ename": "E", "evalue": "v", "traceback": ["line" * 1000] * 1000},
        {"traceback": [0] * 10**5},
    ],
    ids=["pictures", "escapes", "values", "traceback", "numbers"],
)
@pytest.mark.usefixtures("small_limits")
def test_a_message_of_many_parts_fits_into_a_frame(content: dict[str, Any]) -> None:
    session = Session(key=b"key")
    parts = session.serialize(session.msg("display_data", content), ident=b"topic")
    (frame,) = Clipper("key").frames(frames.IOPUB, parts)
    assert len(frame) < 2**18 + 2000
    message = Incoming().message(frames.IOPUB, next(frames.Decoder().feed(frame))[1], session.sign)
    assert message is not None
    if "text/plain" in content.get("data", {}):
        assert message.content["data"] == {"text/plain": "chart"}


@pytest.mark.parametrize(
    "parts",
    [
        [b"x" * 10**6],
        [b"<IDS|MSG>", b"x" * 10**6],
        [b"<IDS|MSG>", b"", b"{}", b"{}", b"{}", b"[" * 10**6],
        [b"<IDS|MSG>", b"", b"[]", b"{}", b"{}", b"[]" + b" " * 10**6],
        [b"<IDS|MSG>", b"", b"{}", b"{}", b"x" * 10**8, b"{}"],
        [b""] * 10**4,
    ],
)
def test_what_is_no_message_of_the_kernel_does_not_end_the_bridge(parts: list[bytes]) -> None:
    (frame,) = Clipper("key").frames(frames.IOPUB, parts)
    incoming, (received,) = Incoming(), frames.Decoder().feed(frame)
    assert incoming.message(*received, Session(key=b"key").sign) is None
    assert incoming.take_dropped() == {"unreadable": 1}
