"""The gateway's process, asked by the client that trials use, over real HTTP to a local provider."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from pytest_super.model.api import CHAT, TRIALS
from pytest_super.model.client import GatewayModel, error_of
from pytest_super.model.completion import BudgetSpentError, FilteredError, ModelError, Usage
from pytest_super.model.gateway import GatewayServer
from pytest_super.model.gateway_process import Gateway
from pytest_super.model.settings import ModelSettings
from pytest_super.model.token_estimate import UNBOUNDED, MaxUsage
from tests.openai_server import OpenAIServer, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.model.answer import Answer, Request

ASK = [{"role": "user", "content": "step " * 100}]
# What the local provider counts for it.
PROMPT_TOKENS = 104


@contextmanager
def running(settings: ModelSettings, server: OpenAIServer) -> Iterator[Gateway]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        gateway = Gateway(f"test-{uuid.uuid4().hex[:8]}", settings)
        gateway.start()
    try:
        yield gateway
    finally:
        gateway.close()


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> ModelSettings:
    folder = tmp_path_factory.mktemp("run")
    return ModelSettings(
        name="openai/gpt-4o",
        parameters={"top_p": 0.5},
        max_cost=None,
        calls=str(folder / "calls.jsonl"),
        record=str(folder / "recorded"),
    )


@pytest.fixture(scope="module")
def module_server() -> Iterator[OpenAIServer]:
    with running_server() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(settings: ModelSettings, module_server: OpenAIServer) -> Iterator[Gateway]:
    """One for all tests: it takes seconds to start, and trials share nothing in it."""
    with running(settings, module_server) as gateway:
        yield gateway


@pytest.fixture
def server(module_server: OpenAIServer) -> OpenAIServer:
    module_server.requests.clear()
    module_server.always("an answer")
    return module_server


def trial(gateway: Gateway, **limits: Any) -> GatewayModel:
    """The model of a trial that has not asked yet."""
    limits = {"token_limit": 10**6, "cost_limit": None, "epoch": 1, **limits}
    tokens = limits.pop("token_limit")
    return GatewayModel(gateway, task=uuid.uuid4().hex[:8], rerun=0, token_limit=lambda: tokens, **limits)


def ask_on(model: GatewayModel) -> None:
    for _ in range(100):
        model.complete(ASK)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_answer_reports_its_usage_and_its_model(gateway: Gateway, server: OpenAIServer) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    server.reply(
        {"text": "look", "tool_calls": [call], "usage": {"prompt_tokens": 11, "completion_tokens": 2}}
    )
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    completion = trial(gateway).complete(ASK, tools=tools)
    assert (completion.text, completion.tool_calls, completion.finish_reason) == (
        "look",
        [call],
        "tool_calls",
    )
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (11, 2)
    assert not completion.is_counted
    assert (completion.model, completion.fingerprint) == ("gpt-4o-2024-08-06", "fp_test")
    assert completion.usage.cost_usd == pytest.approx(11 * 2.5e-6 + 2 * 10e-6)


def test_the_facts_of_a_call_do_not_change_the_providers_answer_whatever_its_model_is_called(
    gateway: Gateway, server: OpenAIServer
) -> None:
    name = "m\r\nX-Other: 1\u2028\U0001f600" * 20_000
    server.always({"text": "hi", "model": name})
    assert trial(gateway).complete(ASK).model == name[:200]
    body = json.dumps({"messages": ASK}).encode()
    forwarded = trial(gateway).forward("POST", CHAT, body, lambda _: None)
    assert forwarded.usage is not None
    assert forwarded.usage.prompt_tokens == PROMPT_TOKENS
    answer = json.loads(forwarded.response.body)
    assert (answer["model"], "super" in answer) == (name, False)
    assert "X-Other" not in forwarded.response.headers


def test_the_users_parameters_win_over_the_agents_and_each_epoch_has_its_seed(
    gateway: Gateway, server: OpenAIServer
) -> None:
    asked = {"temperature": 0.2, "max_tokens": 1500, "top_p": 0.9, "model": "other"}
    trial(gateway, epoch=1).complete(ASK, **asked)
    trial(gateway, epoch=2).complete(ASK, **asked, seed=None)
    names = ("temperature", "max_tokens", "top_p", "model", "seed")
    sent = [tuple(received.body[name] for name in names) for received in server.requests]
    assert sent == [(0.2, 1500, 0.5, "gpt-4o", 1), (0.2, 1500, 0.5, "gpt-4o", 2)]


def test_an_agent_that_asks_in_a_loop_does_not_pass_its_token_limit(
    gateway: Gateway, server: OpenAIServer
) -> None:
    model = trial(gateway, token_limit=1000)
    with pytest.raises(BudgetSpentError, match="tokens"):
        ask_on(model)
    assert len(server.requests) == 1000 // PROMPT_TOKENS
    with pytest.raises(BudgetSpentError, match="tokens"):
        model.complete(ASK)
    assert len(server.requests) == 1000 // PROMPT_TOKENS


def at_once(*models: GatewayModel) -> None:
    """Let each model be asked until it is refused, all at the same time."""

    def ask(model: GatewayModel) -> None:
        with pytest.raises((BudgetSpentError, ModelError)):
            ask_on(model)

    threads = [threading.Thread(target=ask, args=[model]) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("used", [PROMPT_TOKENS, 500])
def test_calls_at_once_do_not_pass_a_token_limit_together(
    gateway: Gateway, server: OpenAIServer, used: int
) -> None:
    server.always({"text": "an answer", "usage": {"prompt_tokens": used, "completion_tokens": 2}})
    server.latency = 0.1
    at_once(*[trial(gateway, token_limit=1000)] * 16)
    server.latency = 0.0
    assert len(server.requests) == 1000 // used


def ask_together(models: list[GatewayModel], messages: list[dict[str, Any]]) -> None:
    """Each model is asked once, all at the same time; some of them are refused."""

    def ask(model: GatewayModel) -> None:
        with suppress(BudgetSpentError, ModelError):
            model.complete(messages)

    threads = [threading.Thread(target=ask, args=[model]) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def used_by(model: GatewayModel) -> Usage:
    used = model.booked_usage(30)
    assert used is not None
    return used


def test_concurrent_calls_larger_than_before_pass_a_token_limit_by_one_at_most(
    gateway: Gateway, server: OpenAIServer
) -> None:
    model = trial(gateway, token_limit=20_000)
    model.complete(ASK)
    server.always({"text": "an answer", "usage": {"prompt_tokens": 10_000, "completion_tokens": 2}})
    server.latency = 0.1
    ask_together([model] * 16, [{"role": "user", "content": "\u2602" * 10_000}])
    server.latency = 0.0
    assert 10_000 < used_by(model).prompt_tokens < 20_000 + 10_000


def test_a_limit_can_rise(gateway: Gateway, server: OpenAIServer) -> None:
    limits = [1000]
    model = GatewayModel(
        gateway, task="rising", epoch=1, rerun=0, token_limit=lambda: limits[0], cost_limit=None
    )
    with pytest.raises(BudgetSpentError, match="tokens"):
        ask_on(model)
    limits[0] = 2000
    with pytest.raises(BudgetSpentError, match="tokens"):
        ask_on(model)
    assert len(server.requests) == 2000 // PROMPT_TOKENS


def test_broken_answers_are_charged(gateway: Gateway, server: OpenAIServer) -> None:
    server.reply(server.fault("empty"))
    completion = trial(gateway).complete(ASK)
    assert (completion.usage.prompt_tokens, len(server.requests)) == (2 * PROMPT_TOKENS, 2)


def test_a_call_whose_client_leaves_is_charged(
    gateway: Gateway, server: OpenAIServer, settings: ModelSettings
) -> None:
    server.latency = 0.5
    model = trial(gateway, seconds_left=lambda: 0.1)
    with pytest.raises(BudgetSpentError, match="wall"):
        model.complete(ASK)
    server.latency = 0.0
    assert used_by(model).prompt_tokens == PROMPT_TOKENS
    booked = [line for line in lines_of(Path(settings.calls)) if line["trial"] == model.trial["name"]]
    assert len(booked) == 1


def test_a_malformed_request_is_the_agents_mistake(gateway: Gateway, server: OpenAIServer) -> None:
    model = trial(gateway)
    for messages in ([], [{"role": "nobody", "content": "x"}]):
        with pytest.raises(ValueError, match="messages"):
            model.complete(messages)
    assert server.requests == []
    assert model.complete([{"role": "user", "content": "half a \ud800 pair"}]).text == "an answer"


def test_an_agent_that_asks_in_a_loop_does_not_pass_its_cost_limit(
    gateway: Gateway, server: OpenAIServer
) -> None:
    with pytest.raises(BudgetSpentError, match="cost"):
        ask_on(trial(gateway, cost_limit=0.002))
    price = PROMPT_TOKENS * 2.5e-6 + 2 * 10e-6
    assert len(server.requests) == int(0.002 / price)


def test_usage_that_is_not_reported_is_counted_and_marked(gateway: Gateway, server: OpenAIServer) -> None:
    server.always(server.fault("no_usage"))
    model = trial(gateway, token_limit=1000)
    assert model.complete(ASK).is_counted
    with pytest.raises(BudgetSpentError, match="tokens"):
        ask_on(model)
    assert 5 < len(server.requests) < 12


def test_a_transient_failure_is_retried(gateway: Gateway, server: OpenAIServer) -> None:
    server.reply(server.fault("429", retry_after=0), server.fault("reset"), "at last")
    completion = trial(gateway, token_limit=150).complete(ASK)
    assert (completion.text, len(server.requests)) == ("at last", 3)
    assert completion.seconds > 0


def test_a_final_failure_is_raised(gateway: Gateway, server: OpenAIServer) -> None:
    model = trial(gateway)
    server.reply(*map(server.fault, ("context", "filter", "400")))
    with pytest.raises(BudgetSpentError, match="context"):
        model.complete(ASK)
    with pytest.raises(FilteredError, match="safety system"):
        model.complete(ASK)
    with pytest.raises(ModelError, match="Unknown parameter") as refused:
        model.complete(ASK)
    assert not refused.value.is_final
    assert model.complete(ASK).text == "an answer"


def test_a_denial_that_one_request_provokes_does_not_concern_others(
    gateway: Gateway, server: OpenAIServer
) -> None:
    server.reply({"error": {"status": 403, "message": "Not with these tools", "code": 403}}, "Yes.")
    model = trial(gateway)
    with pytest.raises(ModelError, match="Not with these tools") as denied:
        model.complete(ASK)
    assert not denied.value.is_final
    assert trial(gateway).complete(ASK).text == model.complete(ASK).text == "an answer"


def test_a_call_ends_with_the_trials_wall_time(gateway: Gateway, server: OpenAIServer) -> None:
    server.reply(server.fault("hang"))
    with pytest.raises(BudgetSpentError, match="wall"):
        trial(gateway, seconds_left=lambda: 0.5).complete(ASK)


def test_ten_megabytes_and_any_character_go_through(gateway: Gateway, server: OpenAIServer) -> None:
    server.reply(server.fault("10MB"))
    assert len(trial(gateway).complete(ASK).text) == 10_000_000
    odd = "\0 \x1b[31m ]]> \u2028 \U0001f600 ü"
    server.by(lambda request: request["messages"][0]["content"])
    assert trial(gateway).complete([{"role": "user", "content": odd}]).text == odd


def test_every_call_is_recorded_whole(
    gateway: Gateway, server: OpenAIServer, settings: ModelSettings
) -> None:
    server.reply("one", server.fault("400"))
    model = trial(gateway)
    model.complete(ASK)
    with pytest.raises(ModelError):
        model.complete(ASK)
    task = model.trial["task"]
    first, second = lines_of(Path(f"{settings.record}/{task}/1.0.jsonl"))
    assert first["request"]["messages"] == ASK
    assert first["response"]["choices"][0]["message"]["content"] == "one"
    assert second["response"]["error"]["code"] == "refused"


@pytest.mark.parametrize("characters", [10, 10**6], ids=["waiting", "sending"])
def test_a_gateway_that_hangs_is_killed_and_replaced(tmp_path: Path, characters: int) -> None:
    (tmp_path / "script").write_text('["one", "two"]')
    calls = tmp_path / "calls.jsonl"
    settings = ModelSettings(
        name=f"scripted:{tmp_path / 'script'}", parameters={}, max_cost=None, calls=str(calls), record=None
    )
    gateway = Gateway(f"test-{uuid.uuid4().hex[:8]}", settings, health_check_after=0.05, health_timeout=0.5)
    try:
        model = trial(gateway)
        assert model.complete(ASK).text == "one"
        process = int((gateway.folder / "pid").read_text())
        os.kill(process, signal.SIGSTOP)
        assert model.complete([{"role": "user", "content": "x" * characters}]).text == "two"
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
        assert len(lines_of(calls)) == 2
        assert "the gateway answered nothing for 0.5 s" in gateway.log.read_text()
    finally:
        gateway.close()


def test_a_slow_call_of_a_healthy_gateway_is_waited_for(
    gateway: Gateway, server: OpenAIServer, settings: ModelSettings
) -> None:
    trial(gateway).complete(ASK)
    hasty = Gateway(gateway.run_id, settings, health_check_after=0.05, health_timeout=1.0)
    server.latency = 1.5
    try:
        assert trial(hasty).complete(ASK).text == "an answer"
        assert len(server.requests) == 2
    finally:
        server.latency = 0.0
        hasty.close()


class Faulty:
    """A provider with a fault of its own."""

    takes_seed = False

    def max_usage(self, request: Request) -> MaxUsage:  # noqa: ARG002
        return UNBOUNDED

    async def complete(self, request: Request, *, task: str, call: int) -> Answer:  # noqa: ARG002
        raise ZeroDivisionError("a fault")


def test_a_bug_in_the_gateway_does_not_stop_the_run(tmp_path: Path) -> None:
    (tmp_path / "script").write_text('["one"]')
    settings = ModelSettings(
        name=f"scripted:{tmp_path / 'script'}",
        parameters={},
        max_cost=None,
        calls=str(tmp_path / "calls.jsonl"),
        record=None,
    )
    faulty = GatewayServer(settings, Faulty())

    async def ask() -> dict[str, Any]:
        async with TestClient(TestServer(faulty.application())) as client:
            limits = {"name": "a/1.0", "task": "a", "epoch": 1, "token_limit": 999, "cost_limit": None}
            token = (await (await client.post(TRIALS, json=limits)).json())["token"]
            bearer = {"Authorization": f"Bearer {token}"}
            answer = await client.post(CHAT, json={"messages": ASK}, headers=bearer)
            error: dict[str, Any] = (await answer.json())["error"]
            return error

    error = error_of(asyncio.run(ask()))
    assert isinstance(error, ModelError)
    assert "a fault" in str(error)
    assert not error.is_final


def test_a_gateway_that_cannot_start_says_why(tmp_path: Path, openai_server: OpenAIServer) -> None:
    (tmp_path / "script").write_text('["one"]')
    settings = ModelSettings(
        name=f"scripted:{tmp_path / 'script'}",
        parameters={},
        max_cost=None,
        calls=str(tmp_path / "no" / "calls.jsonl"),
        record=None,
    )
    with (
        running(settings, openai_server) as gateway,
        pytest.raises(ModelError, match="No such file or directory"),
    ):
        trial(gateway).complete(ASK)
