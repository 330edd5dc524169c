"""Limits under calls that are concurrent, retried or abandoned, in a gateway inside the test's process."""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pytest_super.model.caller import Caller
from pytest_super.model.client import error_of
from pytest_super.model.completion import Answer, Failure, ModelCallError, ModelError, Usage
from pytest_super.model.gateway import GatewayServer
from pytest_super.model.gateway_process import LAST
from pytest_super.model.protocols.common import COMMON
from pytest_super.model.protocols.protocol import Request
from pytest_super.model.provider import Asked, ModelProvider
from pytest_super.model.retry import RetryPolicy
from pytest_super.model.settings import CallingTrial, ModelSettings
from pytest_super.model.token_estimate import UNBOUNDED, MaxUsage
from pytest_super.store.answers import read_answers
from pytest_super.store.json_lines import to_line
from tests.integration.conftest import read_lines

T = TypeVar("T")
ASK = [{"role": "user", "content": "step " * 100}]
TOKEN = "the clients' token"
SMALL = Usage(prompt_tokens=100, completion_tokens=2, cost_usd=0.001)
MOST = MaxUsage(prompt_tokens=500, cost_usd=0.01)


@dataclass
class Scripted(ModelProvider):
    """A provider that answers while `let` is set, and never uses more than `most` unless a test says so."""

    used: Usage = SMALL
    most: MaxUsage = MOST
    faults: int = 0
    """The number of broken answers before the first good one."""
    retry_after: float | None = None
    """The provider's limit of calls is the fault, if this is set."""
    takes_seed: bool = False
    asked: int = 0
    under_way: int = 0
    let: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.let.set()

    def max_usage(self, request: Request) -> MaxUsage:  # noqa: ARG002
        return self.most

    async def ask(self, asked: Asked, call: int) -> Answer:  # noqa: ARG002
        self.asked += 1
        self.under_way += 1
        await self.let.wait()
        self.under_way -= 1
        if self.faults:
            self.faults -= 1
            failure = Failure.TRANSIENT if self.retry_after is None else Failure.RATE_LIMITED
            raise ModelCallError(failure, "no message", usage=self.used, retry_after=self.retry_after)
        return Answer(
            body={"choices": [{"message": {"content": "an answer"}}]},
            usage=self.used,
            is_counted=False,
            model="m",
            fingerprint=None,
        )


@dataclass
class Served:
    """A gateway and a client of it, which asks for trials by their names."""

    gateway: GatewayServer
    socket: Path
    limits: dict[str, Any]
    """Of each trial."""

    async def lines(self, name: str, **asked: Any) -> AsyncIterator[dict[str, Any]]:
        """The lines of an answer. The client leaves if this is cancelled."""
        trial = CallingTrial(
            name=name, task=name, epoch=1, **{"token_limit": None, "cost_limit": None, **self.limits}
        )
        body = json.dumps({"messages": ASK}).encode()
        common = {"trial": asdict(trial), "headers": {}, "sign_of_life": 0.05, "size": len(body)}
        reader, writer = await asyncio.open_unix_connection(self.socket)
        try:
            writer.write(f"{TOKEN}\n".encode() + to_line({**common, **asked}).encode() + body)
            while line := await reader.readline():
                yield json.loads(line)
        finally:
            writer.close()

    async def ask(self, name: str = "a") -> dict[str, Any]:
        """The call's facts, or its error."""
        *_, last = [line async for line in self.lines(name, route=asdict(COMMON.routes[0]))]
        answer: dict[str, Any] = last[LAST]
        error: dict[str, Any] = answer.get("error", answer)
        return error

    async def ask_together(self, *names: str) -> list[dict[str, Any]]:
        return await asyncio.gather(*map(self.ask, names))

    async def used(self, name: str = "a") -> Usage:
        return Usage.from_data(await self.account(name))

    async def account(self, name: str) -> dict[str, Any]:
        *_, last = [line async for line in self.lines(name, route=None, timeout=30)]
        account: dict[str, Any] = last[LAST]
        return account


def serve(
    folder: Path,
    provider: ModelProvider,
    play: Callable[[Served], Awaitable[T]],
    *,
    max_cost: float | None = None,
    draw: Callable[[], float] = lambda: 0.0,
    **limits: Any,
) -> T:
    """The result of `play` with a gateway, which retries without pauses. It lasts a minute at most."""
    calls, record = str(folder / "calls.jsonl"), str(folder / "record")
    settings = ModelSettings(name="m", parameters={}, max_cost=max_cost, calls=calls, record=record)

    async def main() -> T:
        gateway = GatewayServer(Caller(settings, provider, RetryPolicy(draw=draw)), TOKEN)
        # A socket's path must be short.
        with tempfile.TemporaryDirectory() as short:
            socket = Path(short, "socket")
            async with asyncio.timeout(60), await gateway.listen(socket):
                return await play(Served(gateway, socket, limits))

    return asyncio.run(main())


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
    names = [f"t{n}" for n in range(16)]

    async def play(served: Served) -> None:
        await served.ask(names[0])
        provider.let.clear()
        calls = asyncio.ensure_future(served.ask_together(*names, *names))
        await until(lambda: provider.under_way == 32)
        provider.let.set()
        assert all("prompt_tokens" in answer for answer in await calls)

    serve(tmp_path, provider, play, max_cost=max_cost, token_limit=token_limit)


# Retries


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        ({"cost_limit": 0.0025}, "budget_cost"),
        ({"token_limit": 250}, "budget_tokens"),
        ({"max_cost": 0.0025}, "run_cost"),
    ],
)
def test_retries_of_broken_answers_pass_a_limit_by_one_at_most(
    tmp_path: Path, limits: dict[str, Any], code: str
) -> None:
    provider = Scripted(faults=100)

    async def play(served: Served) -> tuple[list[dict[str, Any]], Usage]:
        return await served.ask_together(*["a"] * 8), await served.used()

    answers, used = serve(tmp_path, provider, play, **limits)
    assert [answer["code"] for answer in answers] == [code] * 8
    assert provider.asked == 2
    assert used == Usage(prompt_tokens=200, completion_tokens=4, cost_usd=0.002, provided=2)


def test_a_call_reports_what_all_its_attempts_used_as_the_ledger_does(tmp_path: Path) -> None:
    async def play(served: Served) -> tuple[dict[str, Any], Usage]:
        return await served.ask(), await served.used()

    told, used = serve(tmp_path, Scripted(faults=2), play, max_cost=1.0)
    assert (used.prompt_tokens, used.completion_tokens) == (300, 6)
    assert used.cost_usd == pytest.approx(0.003)
    assert {name: told[name] for name in vars(used)} == vars(used)
    assert told["attempts"] == 3
    assert [line["prompt_tokens"] for line in read_lines(tmp_path / "calls.jsonl")] == [100] * 3


def test_a_paid_call_is_safe_on_the_disk_before_its_answer_is_sent(
    tmp_path: Path, is_synced: Callable[[Path], bool]
) -> None:
    async def play(served: Served) -> list[bool]:
        await served.ask()
        return [is_synced(tmp_path / name) for name in ("calls.jsonl",)]

    assert serve(tmp_path, Scripted(), play) == [True]


@pytest.mark.parametrize(
    ("faults", "recorded"), [(0, "answer"), (1, "error")], ids=["answer", "broken answer"]
)
def test_a_price_that_is_not_known_stops_a_run_with_a_cost_limit(
    tmp_path: Path, faults: int, recorded: str
) -> None:
    provider = Scripted(faults=faults, used=Usage(prompt_tokens=100, completion_tokens=2))

    async def play(served: Served) -> list[dict[str, Any]]:
        return [await served.ask(), await served.ask("b")]

    answers = serve(tmp_path, provider, play, max_cost=1.0)
    assert [answer["code"] for answer in answers] == ["fatal", "fatal"]
    assert "state the price with --super-model-arg" in answers[1]["message"]
    assert provider.asked == 1
    assert len(read_lines(tmp_path / "calls.jsonl")) == 1
    assert recorded in read_answers(tmp_path / "record/a/answers.jsonl").calls[1].end


def test_all_calls_wait_for_a_rate_limit_and_their_trials_know_how_long(tmp_path: Path) -> None:
    provider = Scripted(faults=1, retry_after=0.3)

    async def play(served: Served) -> list[float]:
        await served.ask("a")
        provider.faults = 1
        limited = asyncio.ensure_future(served.ask("a"))
        await until(lambda: not provider.faults)
        await served.ask("b")
        await limited
        return [(await served.account(name))["waited_seconds"] for name in ("a", "b", "c")]

    a, b, c = serve(tmp_path, provider, play)
    assert a >= 0.6
    assert (b > 0, c) == (True, 0)
    written = [line.get("waited_seconds", 0) for line in read_lines(tmp_path / "calls.jsonl")]
    assert max(written) == pytest.approx(a, abs=0.1)


# Abandoned calls


def test_a_call_that_waits_when_its_client_leaves_is_not_made(tmp_path: Path) -> None:
    provider = Scripted(most=MaxUsage(prompt_tokens=inf, cost_usd=0))

    async def play(served: Served) -> Usage:
        under_way = served.gateway.caller.under_way["a"]
        await served.ask()
        provider.let.clear()
        first = asyncio.ensure_future(served.ask())
        await until(lambda: provider.under_way == 1)
        second = asyncio.ensure_future(served.ask())
        await until(lambda: len(under_way) == 2)
        second.cancel()
        await until(lambda: len(under_way) == 1)
        provider.let.set()
        await first
        assert "prompt_tokens" in await served.ask()
        return await served.used()

    assert serve(tmp_path, provider, play, token_limit=1000).prompt_tokens == 300
    assert provider.asked == 3


def test_a_call_whose_client_leaves_meanwhile_is_booked_and_not_tried_again(tmp_path: Path) -> None:
    provider = Scripted(faults=2)
    provider.let.clear()

    async def play(served: Served) -> Usage:
        call = asyncio.ensure_future(served.ask())
        await until(lambda: provider.under_way == 1)
        (made,) = served.gateway.caller.under_way["a"]
        call.cancel()
        await until(lambda: made.task is not None and made.task.cancelling() > 0)
        provider.let.set()
        return await served.used()

    assert serve(tmp_path, provider, play).prompt_tokens == 100
    assert provider.asked == 1


def test_an_answer_whose_client_has_left_is_recorded_with_the_time_when_it_left(tmp_path: Path) -> None:
    provider = Scripted()
    provider.let.clear()

    async def play(served: Served) -> None:
        call = asyncio.ensure_future(served.ask())
        await until(lambda: provider.under_way == 1)
        await asyncio.sleep(0.1)
        call.cancel()
        file = tmp_path / "record/a/answers.jsonl"
        await until(lambda: "left_after" in file.read_text())
        provider.let.set()
        await served.used()

    serve(tmp_path, provider, play)
    call = read_answers(tmp_path / "record/a/answers.jsonl").calls[1]
    assert call.left_after is not None
    assert 0.1 <= call.left_after <= call.end["seconds"]
    assert call.end["answer"]["choices"]


def test_many_calls_at_once_are_recorded_one_by_one(tmp_path: Path) -> None:
    async def play(served: Served) -> None:
        await served.ask_together(*["a", "b"] * 32)

    serve(tmp_path, Scripted(), play)
    for name in "ab":
        calls = read_answers(tmp_path / f"record/{name}/answers.jsonl").calls
        assert list(calls) == list(range(1, 33))
        assert all("answer" in call.end for call in calls.values())


class Faulty(Scripted):
    """A provider with a bug."""

    async def ask(self, asked: Asked, call: int) -> Answer:  # noqa: ARG002
        raise ZeroDivisionError("a fault")


def test_a_bug_in_the_gateway_does_not_stop_the_run(tmp_path: Path) -> None:
    error = error_of(serve(tmp_path, Faulty(), Served.ask))
    assert isinstance(error, ModelError)
    assert "a fault" in str(error)
    assert not error.is_final
