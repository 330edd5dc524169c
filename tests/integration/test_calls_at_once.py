"""Limits under calls that are made at once, tried again and left, in a gateway of this process."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from pytest_super.model.answer import Answer, ModelCallError, Trouble
from pytest_super.model.bound import UNBOUNDED, Bound
from pytest_super.model.client import CHAT
from pytest_super.model.completion import Used
from pytest_super.model.gateway import Gateway
from pytest_super.model.launch import BOOKS, FACTS
from pytest_super.model.patience import Patience
from pytest_super.model.provider import LitellmProvider
from pytest_super.model.settings import ModelSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from pytest_super.model.answer import Provider, Request
    from tests.openai_server import OpenAIServer

ASK = [{"role": "user", "content": "step " * 100}]
SMALL = Used(prompt_tokens=100, completion_tokens=2, cost_usd=0.001)
MOST = Bound(prompt_tokens=500, cost_usd=0.01)


@dataclass
class Scripted:
    """Tells what is used, once it is let; its bound holds unless it is told otherwise."""

    used: Used = SMALL
    most: Bound = MOST
    faults: int = 0
    """Answers that are thrown away, before all others."""
    takes_seed: bool = False
    asked: int = 0
    under_way: int = 0
    let: asyncio.Event = field(default_factory=asyncio.Event)

    def bound(self, request: Request) -> Bound:  # noqa: ARG002
        return self.most

    async def complete(self, request: Request, *, task: str, call: int) -> Answer:  # noqa: ARG002
        self.asked += 1
        self.under_way += 1
        await self.let.wait()
        self.under_way -= 1
        if self.faults:
            self.faults -= 1
            raise ModelCallError(Trouble.TRANSIENT, "no message", used=self.used)
        return Answer(
            body={"choices": [{"message": {"content": "an answer"}}]},
            prompt_tokens=self.used.prompt_tokens,
            completion_tokens=self.used.completion_tokens,
            cost_usd=self.used.cost_usd,
            is_counted=False,
            model="m",
            fingerprint=None,
        )


@dataclass
class Served:
    """A gateway and a client of it."""

    gateway: Gateway
    client: TestClient[Any, Any]

    async def open(self, name: str = "a/1.1", **limits: Any) -> str:
        """A trial's token."""
        trial = {"name": name, "task": name, "epoch": 1, "token_limit": None, "cost_limit": None, **limits}
        answer = await self.client.post("/super/trials", json=trial)
        token: str = (await answer.json())["token"]
        return token

    async def ask(self, token: str) -> str:
        """The code of the trouble, or what is told of the call."""
        bearer = {"Authorization": f"Bearer {token}"}
        answer = await self.client.post(CHAT, json={"messages": ASK}, headers=bearer)
        if answer.status == 200:
            return answer.headers[FACTS]
        code: str = (await answer.json())["error"]["code"]
        return code

    async def ask_together(self, *tokens: str) -> list[str]:
        return await asyncio.gather(*map(self.ask, tokens))

    async def used(self, token: str) -> Used:
        bearer = {"Authorization": f"Bearer {token}"}
        answer = await self.client.post(BOOKS, json={"patience": 30}, headers=bearer)
        return Used(**await answer.json())


@asynccontextmanager
async def serving(
    folder: Path, provider: Provider, max_cost: float | None = None, sleep: Any = None
) -> AsyncIterator[Served]:
    """Nobody waits to try again, unless `sleep` says how. The time that a whole test may take is bounded."""
    (folder / "script").write_text('["one"]')
    settings = ModelSettings(
        name=f"scripted:{folder / 'script'}",
        parameters={},
        max_cost=max_cost,
        calls=str(folder / "calls.jsonl"),
        record=None,
    )
    gateway = Gateway(settings)
    gateway.provider = provider
    gateway.patience = Patience(sleep=sleep or (lambda _: asyncio.sleep(0)))
    application = gateway.application()
    async with asyncio.timeout(60), TestClient(TestServer(application, handler_cancellation=True)) as client:
        yield Served(gateway, client)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


# At once


def test_small_calls_of_all_trials_are_under_way_at_once(tmp_path: Path) -> None:
    provider = Scripted()

    async def main() -> None:
        async with serving(tmp_path, provider, max_cost=50.0) as served:
            tokens = [await served.open(f"t{n}/1.1", token_limit=400_000) for n in range(16)]
            provider.let.set()
            await served.ask(tokens[0])
            provider.let.clear()
            calls = asyncio.ensure_future(served.ask_together(*tokens, *tokens))
            await until(lambda: provider.under_way == 32)
            provider.let.set()
            assert all("prompt_tokens" in answer for answer in await calls)

    asyncio.run(main())


def test_without_limits_calls_of_which_nothing_is_known_are_under_way_at_once(tmp_path: Path) -> None:
    provider = Scripted(most=UNBOUNDED)

    async def main() -> None:
        async with serving(tmp_path, provider) as served:
            token = await served.open()
            provider.let.set()
            await served.ask(token)
            provider.let.clear()
            calls = asyncio.ensure_future(served.ask_together(token, token, token))
            await until(lambda: provider.under_way == 3)
            provider.let.set()
            assert all("prompt_tokens" in answer for answer in await calls)

    asyncio.run(main())


def test_calls_of_which_nothing_is_known_are_made_one_at_a_time_under_a_limit(tmp_path: Path) -> None:
    most = []

    class Watched(Scripted):
        async def complete(self, request: Request, *, task: str, call: int) -> Answer:
            most.append(self.under_way + 1)
            return await super().complete(request, task=task, call=call)

    provider = Watched(most=UNBOUNDED)
    provider.let.set()

    async def main() -> list[str]:
        async with serving(tmp_path, provider) as served:
            return await served.ask_together(*[await served.open(token_limit=1000)] * 8)

    answers = asyncio.run(main())
    assert most == [1] * 8
    assert all("prompt_tokens" in answer for answer in answers)


def test_answers_that_cost_more_than_those_before_pass_a_cost_limit_by_one_at_most(
    tmp_path: Path, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in openai_server.environment.items():
        monkeypatch.setenv(name, value)
    openai_server.reply("an answer")
    openai_server.always({"text": "more", "usage": {"prompt_tokens": 100, "completion_tokens": 16_000}})
    openai_server.latency = 0.05

    async def main() -> Used:
        async with serving(tmp_path, LitellmProvider("openai/gpt-4o")) as served:
            token = await served.open(cost_limit=0.05)
            await served.ask(token)
            codes = await served.ask_together(*[token] * 16)
            assert codes.count("budget_cost") == 15
            return await served.used(token)

    assert asyncio.run(main()).cost_usd == pytest.approx(0.16, rel=0.1)


# Tried again


@pytest.mark.parametrize(
    ("limits", "code"), [({"cost_limit": 0.0025}, "budget_cost"), ({"token_limit": 250}, "budget_tokens")]
)
def test_no_retry_of_thrown_away_answers_passes_a_limit_by_more_than_one(
    tmp_path: Path, limits: dict[str, Any], code: str
) -> None:
    provider = Scripted(faults=100)
    provider.let.set()

    async def main() -> tuple[list[str], Used]:
        async with serving(tmp_path, provider) as served:
            token = await served.open(**limits)
            return await served.ask_together(*[token] * 8), await served.used(token)

    codes, used = asyncio.run(main())
    assert codes == [code] * 8
    assert provider.asked == 2
    assert used == Used(prompt_tokens=200, completion_tokens=4, cost_usd=0.002)


def test_a_call_tells_what_all_its_attempts_used_as_the_books_do(tmp_path: Path) -> None:
    provider = Scripted(faults=2)
    provider.let.set()

    async def main() -> tuple[dict[str, Any], Used]:
        async with serving(tmp_path, provider, max_cost=1.0) as served:
            token = await served.open()
            return json.loads(await served.ask(token)), await served.used(token)

    told, used = asyncio.run(main())
    assert (used.prompt_tokens, used.completion_tokens) == (300, 6)
    assert used.cost_usd == pytest.approx(0.003)
    assert {name: told[name] for name in vars(used)} == vars(used)
    assert told["attempts"] == 3
    lines = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert [line["prompt_tokens"] for line in lines] == [100] * 3


def test_a_thrown_away_answer_whose_price_is_not_known_stops_a_run_whose_cost_is_limited(
    tmp_path: Path,
) -> None:
    provider = Scripted(faults=1, used=Used(prompt_tokens=100, completion_tokens=2))
    provider.let.set()

    async def main() -> str:
        async with serving(tmp_path, provider, max_cost=1.0) as served:
            return await served.ask(await served.open())

    assert asyncio.run(main()) == "fatal"
    assert provider.asked == 1


# Left


def test_a_call_that_waits_when_its_client_leaves_is_not_made(tmp_path: Path) -> None:
    provider = Scripted(most=Bound(prompt_tokens=inf, cost_usd=0))

    async def main() -> Used:
        async with serving(tmp_path, provider) as served:
            token = await served.open(token_limit=1000)
            under_way = served.gateway.under_way["a/1.1"]
            provider.let.set()
            await served.ask(token)
            provider.let.clear()
            first = asyncio.ensure_future(served.ask(token))
            await until(lambda: provider.under_way == 1)
            second = asyncio.ensure_future(served.ask(token))
            await until(lambda: len(under_way) == 2)
            second.cancel()
            await until(lambda: len(under_way) == 1)
            provider.let.set()
            await first
            assert "prompt_tokens" in await served.ask(token)
            return await served.used(token)

    assert asyncio.run(main()).prompt_tokens == 300
    assert provider.asked == 3


def test_a_call_whose_client_leaves_while_the_provider_is_asked_is_booked_and_not_tried_again(
    tmp_path: Path,
) -> None:
    provider = Scripted(faults=2)

    async def main() -> Used:
        async with serving(tmp_path, provider) as served:
            token = await served.open()
            call = asyncio.ensure_future(served.ask(token))
            await until(lambda: provider.under_way == 1)
            (made,) = served.gateway.under_way["a/1.1"]
            call.cancel()
            await until(lambda: made.is_left)
            provider.let.set()
            return await served.used(token)

    assert asyncio.run(main()).prompt_tokens == 100
    assert provider.asked == 1


def test_a_call_whose_client_leaves_before_the_next_try_is_not_tried_again(tmp_path: Path) -> None:
    provider = Scripted(faults=1)
    provider.let.set()
    is_waiting = asyncio.Event()

    async def wait(_seconds: float) -> None:
        is_waiting.set()
        await asyncio.Event().wait()

    async def main() -> Used:
        async with serving(tmp_path, provider, sleep=wait) as served:
            token = await served.open()
            call = asyncio.ensure_future(served.ask(token))
            await is_waiting.wait()
            call.cancel()
            return await served.used(token)

    assert asyncio.run(main()).prompt_tokens == 100
    assert provider.asked == 1
