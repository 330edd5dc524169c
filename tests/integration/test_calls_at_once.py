"""Limits under calls that are concurrent, retried or abandoned, in a gateway inside the test's process."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from pytest_super.model.answer import Answer
from pytest_super.model.api import CHAT, FACTS, TRIALS, USAGE
from pytest_super.model.client import error_of
from pytest_super.model.completion import ModelError, Usage
from pytest_super.model.failures import Failure, ModelCallError
from pytest_super.model.gateway import GatewayServer
from pytest_super.model.litellm_provider import LitellmProvider
from pytest_super.model.retry import RetryPolicy
from pytest_super.model.settings import ModelSettings
from pytest_super.model.token_estimate import UNBOUNDED, MaxUsage
from tests.integration.conftest import read_lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from aiohttp import ClientResponse

    from pytest_super.model.answer import Request
    from pytest_super.model.provider import ModelProvider
    from tests.openai_server import OpenAIServer

ASK = [{"role": "user", "content": "step " * 100}]
SMALL = Usage(prompt_tokens=100, completion_tokens=2, cost_usd=0.001)
MOST = MaxUsage(prompt_tokens=500, cost_usd=0.01)


@dataclass
class Scripted:
    """A provider that answers once `let` is set, and never uses more than `most` unless a test says so."""

    used: Usage = SMALL
    most: MaxUsage = MOST
    faults: int = 0
    """The number of broken answers before the first good one."""
    takes_seed: bool = False
    asked: int = 0
    under_way: int = 0
    let: asyncio.Event = field(default_factory=asyncio.Event)

    def max_usage(self, request: Request) -> MaxUsage:  # noqa: ARG002
        return self.most

    async def complete(self, request: Request, *, task: str, call: int) -> Answer:  # noqa: ARG002
        self.asked += 1
        self.under_way += 1
        await self.let.wait()
        self.under_way -= 1
        if self.faults:
            self.faults -= 1
            raise ModelCallError(Failure.TRANSIENT, "no message", usage=self.used)
        return Answer(
            body={"choices": [{"message": {"content": "an answer"}}]},
            usage=self.used,
            is_counted=False,
            model="m",
            fingerprint=None,
        )


@dataclass
class Served:
    """A gateway and a client of it."""

    gateway: GatewayServer
    client: TestClient[Any, Any]

    async def open(self, name: str = "a/1.1", **limits: Any) -> str:
        """A trial's token."""
        trial = {"name": name, "task": name, "epoch": 1, "token_limit": None, "cost_limit": None, **limits}
        answer = await self.client.post(TRIALS, json=trial)
        token: str = (await answer.json())["token"]
        return token

    async def post(self, token: str) -> ClientResponse:
        return await self.client.post(
            CHAT, json={"messages": ASK}, headers={"Authorization": f"Bearer {token}"}
        )

    async def ask(self, token: str) -> str:
        """The code of the failure, or the call's facts."""
        answer = await self.post(token)
        if answer.status == 200:
            return answer.headers[FACTS]
        code: str = (await answer.json())["error"]["code"]
        return code

    async def ask_together(self, *tokens: str) -> list[str]:
        return await asyncio.gather(*map(self.ask, tokens))

    async def used(self, token: str) -> Usage:
        bearer = {"Authorization": f"Bearer {token}"}
        answer = await self.client.post(USAGE, json={"timeout": 30}, headers=bearer)
        return Usage.from_data(await answer.json())


@asynccontextmanager
async def serving(
    folder: Path, provider: ModelProvider, max_cost: float | None = None, sleep: Any = None
) -> AsyncIterator[Served]:
    """A gateway whose retries do not pause, unless `sleep` does. It lasts a minute at most."""
    (folder / "script").write_text('["one"]')
    settings = ModelSettings(
        name=f"scripted:{folder / 'script'}",
        parameters={},
        max_cost=max_cost,
        calls=str(folder / "calls.jsonl"),
        record=None,
    )
    retry = RetryPolicy(sleep=sleep or (lambda _: asyncio.sleep(0)))
    gateway = GatewayServer(settings, provider, retry)
    application = gateway.application()
    async with asyncio.timeout(60), TestClient(TestServer(application, handler_cancellation=True)) as client:
        yield Served(gateway, client)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


# At once


@pytest.mark.parametrize(
    ("used", "most", "token_limit", "max_cost"),
    [
        (SMALL, MOST, 400_000, 50.0),
        (SMALL, UNBOUNDED, None, None),
        (replace(SMALL, cost_usd=0.0), replace(MOST, cost_usd=0.0), None, 1.0),
    ],
    ids=["small", "of unknown size without limits", "free"],
)
def test_calls_that_pass_no_limit_together_are_under_way_at_once(
    tmp_path: Path, used: Usage, most: MaxUsage, token_limit: int | None, max_cost: float | None
) -> None:
    provider = Scripted(used=used, most=most)

    async def main() -> None:
        async with serving(tmp_path, provider, max_cost) as served:
            tokens = [await served.open(f"t{n}/1.1", token_limit=token_limit) for n in range(16)]
            provider.let.set()
            await served.ask(tokens[0])
            provider.let.clear()
            calls = asyncio.ensure_future(served.ask_together(*tokens, *tokens))
            await until(lambda: provider.under_way == 32)
            provider.let.set()
            assert all("prompt_tokens" in answer for answer in await calls)

    asyncio.run(main())


def test_calls_of_unknown_size_are_made_one_at_a_time_under_a_limit(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("limits", "max_cost", "code"),
    [({"cost_limit": 0.05}, None, "budget_cost"), ({}, 0.05, "fatal")],
    ids=["trial", "run"],
)
def test_calls_that_cost_more_than_before_pass_a_cost_limit_by_one_at_most(
    tmp_path: Path,
    openai_environment: OpenAIServer,
    limits: dict[str, Any],
    max_cost: float | None,
    code: str,
) -> None:
    openai_environment.reply("an answer")
    openai_environment.always({"text": "more", "usage": {"prompt_tokens": 100, "completion_tokens": 16_000}})
    openai_environment.latency = 0.05

    async def main() -> float:
        async with serving(tmp_path, LitellmProvider("openai/gpt-4o"), max_cost) as served:
            trial = await served.open(**limits)
            tokens = [await served.open(f"t{n}/1.1") if max_cost else trial for n in range(16)]
            await served.ask(trial)
            codes = await served.ask_together(*tokens)
            assert codes.count(code) == 15
            return served.gateway.caller.ledger.usage.cost_usd or 0.0

    assert asyncio.run(main()) == pytest.approx(0.16, rel=0.1)


# Retries


@pytest.mark.parametrize(
    ("limits", "max_cost", "code"),
    [
        ({"cost_limit": 0.0025}, None, "budget_cost"),
        ({"token_limit": 250}, None, "budget_tokens"),
        ({}, 0.0025, "fatal"),
    ],
)
def test_retries_of_broken_answers_pass_a_limit_by_one_at_most(
    tmp_path: Path, limits: dict[str, Any], max_cost: float | None, code: str
) -> None:
    provider = Scripted(faults=100)
    provider.let.set()

    async def main() -> tuple[list[str], Usage]:
        async with serving(tmp_path, provider, max_cost) as served:
            token = await served.open(**limits)
            return await served.ask_together(*[token] * 8), await served.used(token)

    codes, used = asyncio.run(main())
    assert codes == [code] * 8
    assert provider.asked == 2
    assert used == Usage(prompt_tokens=200, completion_tokens=4, cost_usd=0.002)


def test_a_call_reports_what_all_its_attempts_used_as_the_ledger_does(tmp_path: Path) -> None:
    provider = Scripted(faults=2)
    provider.let.set()

    async def main() -> tuple[dict[str, Any], Usage]:
        async with serving(tmp_path, provider, max_cost=1.0) as served:
            token = await served.open()
            return json.loads(await served.ask(token)), await served.used(token)

    told, used = asyncio.run(main())
    assert (used.prompt_tokens, used.completion_tokens) == (300, 6)
    assert used.cost_usd == pytest.approx(0.003)
    assert {name: told[name] for name in vars(used)} == vars(used)
    assert told["attempts"] == 3
    assert [line["prompt_tokens"] for line in read_lines(tmp_path / "calls.jsonl")] == [100] * 3


def test_a_broken_answer_of_unknown_price_stops_a_run_with_a_cost_limit(
    tmp_path: Path,
) -> None:
    provider = Scripted(faults=1, used=Usage(prompt_tokens=100, completion_tokens=2))
    provider.let.set()

    async def main() -> str:
        async with serving(tmp_path, provider, max_cost=1.0) as served:
            return await served.ask(await served.open())

    assert asyncio.run(main()) == "fatal"
    assert provider.asked == 1


# Abandoned calls


def test_a_call_that_waits_when_its_client_leaves_is_not_made(tmp_path: Path) -> None:
    provider = Scripted(most=MaxUsage(prompt_tokens=inf, cost_usd=0))

    async def main() -> Usage:
        async with serving(tmp_path, provider) as served:
            token = await served.open(token_limit=1000)
            under_way = served.gateway.caller.under_way["a/1.1"]
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

    async def main() -> Usage:
        async with serving(tmp_path, provider) as served:
            token = await served.open()
            call = asyncio.ensure_future(served.ask(token))
            await until(lambda: provider.under_way == 1)
            (made,) = served.gateway.caller.under_way["a/1.1"]
            call.cancel()
            await until(lambda: made.is_abandoned)
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

    async def main() -> Usage:
        async with serving(tmp_path, provider, sleep=wait) as served:
            token = await served.open()
            call = asyncio.ensure_future(served.ask(token))
            await is_waiting.wait()
            call.cancel()
            return await served.used(token)

    assert asyncio.run(main()).prompt_tokens == 100
    assert provider.asked == 1


class Faulty(Scripted):
    """A provider with a bug."""

    async def complete(self, request: Request, *, task: str, call: int) -> Answer:  # noqa: ARG002
        raise ZeroDivisionError("a fault")


def test_a_bug_in_the_gateway_does_not_stop_the_run(tmp_path: Path) -> None:
    async def main() -> dict[str, Any]:
        async with serving(tmp_path, Faulty()) as served:
            answer = await served.post(await served.open())
            error: dict[str, Any] = (await answer.json())["error"]
            return error

    error = error_of(asyncio.run(main()))
    assert isinstance(error, ModelError)
    assert "a fault" in str(error)
    assert not error.is_final
