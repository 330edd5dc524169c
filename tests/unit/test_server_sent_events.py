"""The events of a response, however its bytes come."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.model import streamed_answer
from pytest_super.model.completion import ModelCallError
from pytest_super.model.protocols.common import COMMON
from pytest_super.model.protocols.protocol import END_MARK, Event
from pytest_super.model.streamed_answer import Relaying, events_of, read_answer

EVENTS: list[Event] = [{"text": "a\u2028 b"}, {"text": "\n\n"}, {"n": [1, {}]}]


def read(text: str, size: int = 100) -> list[Event]:
    """The events of a response whose bytes come in pieces of this size."""
    data = text.encode()

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(data), size):
            yield data[start : start + size]

    async def events() -> list[Event]:
        response = httpx.Response(200, content=pieces())
        return [event async for together in events_of(response) for event in together]

    return asyncio.run(events())


def written(event: Any, line: str = "\n", before: str = "data: ") -> str:
    return before + json.dumps(event, ensure_ascii=False) + 2 * line


@given(
    size=st.integers(1, 40),
    line=st.sampled_from(["\n", "\r\n"]),
    before=st.sampled_from(["data: ", "data:", ": ping\n\ndata: ", "event: x\nid: 1\ndata: "]),
    mark=st.sampled_from(["", "data: [DONE]\n\n"]),
)
def test_events_are_the_same_in_any_pieces(size: int, line: str, before: str, mark: str) -> None:
    text = "".join(written(event, line, before) for event in EVENTS) + mark
    assert read(text, size) == [*EVENTS, *([END_MARK] if mark else [])]


def test_the_last_event_needs_no_blank_line() -> None:
    text = written({"n": 1}) + written({"n": 2})
    assert read(text.strip()) == [{"n": 1}, {"n": 2}]
    assert read(text[:-4]) == [{"n": 1}]
    assert read(written({"n": 1}) + "data: [DONE]") == [{"n": 1}, END_MARK]


@pytest.mark.parametrize("before", ["", "\n\n", "\r\n\r\n\n"])
@pytest.mark.parametrize("between", ["", "\n\n"])
def test_one_json_value_may_have_blank_lines(before: str, between: str) -> None:
    for size in (1, 100):
        assert read(f'{before}{{"n":{between}1}}\n\n', size) == [{"n": 1}]


@pytest.mark.parametrize("between", ["\n", "\n\n"])
def test_a_web_page_is_no_answer(between: str) -> None:
    with pytest.raises(ValueError, match="Expecting value"):
        read(f"<html>{between}<body>data: Bad gateway</body>{between}</html>")


@asynccontextmanager
async def signs_of_life() -> AsyncIterator[AsyncIterator[list[Any]]]:
    async def endless() -> AsyncIterator[list[Any]]:
        while True:
            await asyncio.sleep(0)
            yield []

    yield endless()


def test_an_answer_of_which_only_signs_of_life_come_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streamed_answer, "LONGEST_STREAM", 0.05)

    async def read() -> None:
        async with asyncio.timeout(10):
            await read_answer(signs_of_life(), Relaying(COMMON, None), model="m", silence=600, secrets=())

    with pytest.raises(ModelCallError, match="m: no end of the answer within"):
        asyncio.run(read())
