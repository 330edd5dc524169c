"""Reading a streamed answer: how long it can take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pytest_super.model import streamed_answer
from pytest_super.model.failures import ModelCallError
from pytest_super.model.protocols.common import COMMON
from pytest_super.model.streamed_answer import Relaying, read_answer


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
