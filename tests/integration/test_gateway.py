"""The gateway's process, asked by the client that trials use, over real HTTP to a local provider."""

import json
import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from pytest_super.kernel.conformance.support import started
from pytest_super.kernel.providers.local import LocalSandbox
from pytest_super.model import client, gateway_process
from pytest_super.model.client import PATIENCE, GatewayModel
from pytest_super.model.completion import BudgetSpentError, FilteredError, ModelError
from pytest_super.model.gateway_process import Gateway
from pytest_super.model.protocols.common import COMMON
from pytest_super.model.relay import AnyGateway
from pytest_super.model.settings import ModelSettings
from pytest_super.store.answers import FILE, read_answers
from pytest_super.tasks.task import Limits
from pytest_super.trial.budget import Budget
from tests.integration.conftest import read_lines
from tests.openai_server import OpenAIServer, running_server
from tests.relayed import relayed

ASK = [{"role": "user", "content": "step " * 100}]
TOKEN = "t0ken-of-the-run"
# It has no price, unless an answer names one that has: to look for one, litellm is imported.
MODEL = "openai/my-own"
# What the local provider counts for it.
PROMPT_TOKENS = 104


@contextmanager
def opened(settings: ModelSettings, run_id: str = "", **silence: float) -> Iterator[Gateway]:
    """A gateway of its own, or a further connection to that of a run. It is started by the first call."""
    run_id = run_id or f"test-{uuid.uuid4().hex[:8]}"
    with closing(Gateway(run_id, settings, TOKEN, **silence)) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> ModelSettings:
    folder = tmp_path_factory.mktemp("run")
    return ModelSettings(
        name=MODEL,
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
    with opened(settings) as gateway:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in module_server.environment.items():
                patch.setenv(name, value)
            gateway.start()
        # Some tests give a call little time. Until the first answer calls wait for each other.
        module_server.reply("an answer")
        trial(gateway).complete(ASK)
        yield gateway


@pytest.fixture
def server(module_server: OpenAIServer) -> OpenAIServer:
    module_server.requests.clear()
    module_server.latency = 0.0
    module_server.always("an answer")
    return module_server


def trial(gateway: AnyGateway, **limits: Any) -> GatewayModel:
    """The model of a trial that has not asked yet."""
    limits = {"token_limit": 10**6, "cost_limit": None, "epoch": 1, **limits}
    tokens = limits.pop("token_limit")
    return GatewayModel(gateway, task=uuid.uuid4().hex[:8], rerun=0, token_limit=lambda: tokens, **limits)


def countdown(seconds: float) -> Callable[[], float]:
    """The seconds left of these."""
    deadline = time.monotonic() + seconds
    return lambda: deadline - time.monotonic()


def ask_on(model: GatewayModel) -> None:
    for _ in range(100):
        model.complete(ASK)


def test_an_answer_reports_its_usage_and_its_model(gateway: Gateway, server: OpenAIServer) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    usage = {"prompt_tokens": 11, "completion_tokens": 2}
    server.reply({"text": "look", "tool_calls": [call], "usage": usage, "model": "gpt-4o-2024-08-06"})
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    completion = trial(gateway).complete(ASK, tools=tools)
    assert (completion.text, completion.tool_calls, completion.finish_reason) == (
        "look",
        [call],
        "tool_calls",
    )
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (11, 2)
    assert completion.model == "gpt-4o-2024-08-06"
    assert completion.usage.cost_usd == pytest.approx(11 * 2.5e-6 + 2 * 10e-6)


def test_the_facts_of_a_call_do_not_change_the_answer_whatever_its_model_is_called(
    gateway: Gateway, server: OpenAIServer
) -> None:
    name = "m\r\nX-Other: 1\u2028\U0001f600" * 2_000
    server.always({"text": "hi", "model": name})
    assert trial(gateway).complete(ASK).model == name[:200]
    body = json.dumps({"messages": ASK}).encode()
    answer = trial(gateway).forward(COMMON.routes[0], body)
    assert answer["prompt_tokens"] == PROMPT_TOKENS
    assert (answer["body"]["model"], "super" in answer["body"]) == (name, False)


def test_the_users_parameters_win_over_the_agents_and_each_epoch_has_its_seed(
    gateway: Gateway, server: OpenAIServer
) -> None:
    asked = {"temperature": 0.2, "max_tokens": 1500, "top_p": 0.9, "model": "other"}
    trial(gateway, epoch=1).complete(ASK, **asked)
    trial(gateway, epoch=2).complete(ASK, **asked, seed=None)
    names = ("temperature", "max_tokens", "top_p", "model", "seed")
    sent = [tuple(received.body[name] for name in names) for received in server.requests]
    assert sent == [(0.2, 1500, 0.5, "my-own", 1), (0.2, 1500, 0.5, "my-own", 2)]


def test_an_agent_that_asks_in_a_loop_does_not_pass_its_token_limit_which_can_rise(
    gateway: Gateway, server: OpenAIServer
) -> None:
    limits = [1000]
    model = GatewayModel(
        gateway, task="rising", epoch=1, rerun=0, token_limit=lambda: limits[0], cost_limit=None
    )
    with pytest.raises(BudgetSpentError, match="tokens"):
        ask_on(model)
    assert len(server.requests) == 1000 // PROMPT_TOKENS
    limits[0] = 2000
    with pytest.raises(BudgetSpentError, match="tokens"):
        ask_on(model)
    assert len(server.requests) == 2000 // PROMPT_TOKENS


def test_a_call_that_outlasts_the_trials_wall_time_is_ended_and_charged(
    gateway: Gateway, server: OpenAIServer, settings: ModelSettings
) -> None:
    server.latency = 0.5
    model = trial(gateway, seconds_left=countdown(0.1))
    with pytest.raises(BudgetSpentError, match="wall"):
        model.complete(ASK)
    used = model.booked_usage(30)
    assert used is not None
    assert used.prompt_tokens == PROMPT_TOKENS
    booked = [line for line in read_lines(Path(settings.calls)) if line["trial"] == model.trial.name]
    assert len(booked) == 1


@pytest.mark.slow
def test_failures_and_the_pauses_after_them_are_not_wall_time(gateway: Gateway, server: OpenAIServer) -> None:
    # The start of the gateway is not the provider's time either.
    trial(gateway).complete(ASK)
    budget = Budget(Limits(wall=1.0), tokens=10**6)
    began = time.monotonic()
    budget.start_metering(float)
    model = trial(gateway, seconds_left=budget.wall_left)
    budget.leave_out(model.waited_seconds)
    server.latency = 0.35
    server.reply(server.fault("500"), server.fault("500"), "an answer")
    assert model.complete(ASK).text == "an answer"
    assert budget.spent() is None
    # The answer's own time is not part of it.
    assert 2 * server.latency <= budget.waited_seconds <= time.monotonic() - began - server.latency


def test_a_call_that_no_limit_ends_is_given_up(
    gateway: Gateway, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "LONGEST_CALL", 0.1)
    server.latency = 0.5
    body = json.dumps({"messages": ASK}).encode()
    with pytest.raises(ModelError, match="no answer in 0 s"):
        trial(gateway).complete(ASK)
    with pytest.raises(ModelError, match="no answer in 0 s"):
        trial(gateway).forward(COMMON.routes[0], body)


def ask_for(gateway: Gateway, seconds: float, answers: int = 0) -> GatewayModel:
    """Ask again and again until the wall limit strikes in a call, which comes later after slow answers."""
    left = countdown(inf)
    model = trial(gateway, seconds_left=lambda: left())
    began = time.monotonic()
    for _ in range(answers):
        model.complete(ASK)
    left = countdown(seconds + PATIENCE * (time.monotonic() - began))
    with pytest.raises(BudgetSpentError, match="wall"):
        ask_on(model)
    return model


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "why"),
    [("500", f"{MODEL} answered 500: The server had an error."), ("hang", f"{MODEL}: no answer")],
)
@pytest.mark.parametrize("first", [(), ("an answer",)])
def test_a_provider_that_fails_until_the_wall_limit_is_to_blame(
    gateway: Gateway, server: OpenAIServer, kind: str, why: str, first: tuple[str, ...]
) -> None:
    server.reply(*first)
    server.always(server.fault(kind))
    assert (ask_for(gateway, 1.5, len(first)).outage() or "").startswith(why)


@pytest.mark.slow
def test_a_provider_that_answers_is_not_to_blame_for_the_wall_limit(
    gateway: Gateway, server: OpenAIServer
) -> None:
    server.latency = 0.4
    server.reply(server.fault("500"), "an answer")
    model = ask_for(gateway, 8.0)
    assert len(server.requests) > 3
    assert model.outage() is None


def test_a_malformed_request_is_the_agents_mistake(gateway: Gateway, server: OpenAIServer) -> None:
    model = trial(gateway)
    for messages in ([], [{"role": "nobody", "content": "x"}]):
        with pytest.raises(ValueError, match="messages"):
            model.complete(messages)
    assert server.requests == []
    assert model.complete([{"role": "user", "content": "half a \ud800 pair"}]).text == "an answer"


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
    answers = read_answers(Path(f"{settings.record}/{model.trial.name}/{FILE}"))
    assert [answers.asked(number)["messages"] for number in answers.calls] == [ASK, ASK]
    first, second = (call.end for call in answers.calls.values())
    assert first["answer"]["choices"][0]["message"]["content"] == "one"
    assert second["error"]["code"] == "refused"


@pytest.fixture
def scripted(tmp_path: Path) -> ModelSettings:
    (tmp_path / "script").write_text('["one", "two"]')
    name, calls = f"scripted:{tmp_path / 'script'}", str(tmp_path / "calls.jsonl")
    return ModelSettings(name=name, parameters={}, max_cost=None, calls=calls, record=None)


@pytest.fixture(params=[lambda gateway: gateway, relayed], ids=["by its socket", "by its controller"])
def reached(request: pytest.FixtureRequest) -> Callable[[Gateway], AnyGateway]:
    """How a worker reaches a gateway: on its controller's machine, and on another one."""
    reach: Callable[[Gateway], AnyGateway] = request.param
    return reach


def test_a_call_whose_time_passes_while_the_gateway_starts_is_not_sent(
    scripted: ModelSettings, reached: Callable[[Gateway], AnyGateway]
) -> None:
    with opened(scripted) as own:
        gateway = reached(own)
        with pytest.raises(BudgetSpentError, match="wall"):
            trial(gateway, seconds_left=countdown(0.01)).complete(ASK)
        assert trial(gateway).complete(ASK).text == "one"
    assert len(read_lines(Path(scripted.calls))) == 1


def test_starts_of_gateways_are_not_wall_time(
    scripted: ModelSettings,
    reached: Callable[[Gateway], AnyGateway],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import time; time.sleep(0.5)")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    budget = Budget(Limits(wall=0.9), tokens=10**6)
    began = time.monotonic()
    with opened(scripted) as gateway:
        model = trial(reached(gateway), seconds_left=budget.wall_left)
        budget.start_metering(float)
        budget.leave_out(model.waited_seconds)
        assert model.complete(ASK).text == "one"
        os.kill(int((gateway.folder / "pid").read_text()), signal.SIGKILL)
        assert model.complete(ASK).text == "two"
        assert budget.spent() is None
        # The two starts take longer than the limit.
        assert 0.9 < budget.waited_seconds < time.monotonic() - began


def test_a_gateway_that_hangs_is_killed_and_replaced(
    scripted: ModelSettings, reached: Callable[[Gateway], AnyGateway]
) -> None:
    with opened(scripted, longest_silence=0.5) as gateway:
        model = trial(reached(gateway))
        assert model.complete(ASK).text == "one"
        process = int((gateway.folder / "pid").read_text())
        os.kill(process, signal.SIGSTOP)
        # More than its socket takes while nobody reads.
        assert model.complete([{"role": "user", "content": "x" * 10**6}]).text == "two"
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
        assert len(read_lines(Path(scripted.calls))) == 2
        assert "the gateway answered nothing for 0.5 s" in gateway.log.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("signalled", [signal.SIGKILL, signal.SIGSTOP], ids=["dies", "hangs"])
def test_a_stream_whose_gateway_is_gone_fails_and_is_not_asked_for_again(
    settings: ModelSettings,
    server: OpenAIServer,
    reached: Callable[[Gateway], AnyGateway],
    monkeypatch: pytest.MonkeyPatch,
    signalled: signal.Signals,
) -> None:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    server.always({"text": "one two", "stops_at": "usage"})
    body = json.dumps({"messages": ASK, "stream": True}).encode()
    relayed = []
    with opened(settings, longest_silence=3.0) as gateway:

        def relay(events: bytes) -> None:
            relayed.append(events)
            os.kill(int((gateway.folder / "pid").read_text()), signalled)

        with pytest.raises(ModelError, match="died while it answered"):
            trial(reached(gateway)).forward(COMMON.routes[0], body, relay=relay)
    server.release()
    assert (len(relayed), len(server.requests)) == (1, 1)


def test_a_slow_call_of_a_healthy_gateway_is_waited_for(
    gateway: Gateway, server: OpenAIServer, settings: ModelSettings
) -> None:
    trial(gateway).complete(ASK)
    server.latency = 1.5
    with opened(settings, gateway.run_id, longest_silence=3.0) as hasty:
        assert trial(hasty).complete(ASK).text == "an answer"
    assert len(server.requests) == 2


def test_a_gateway_that_cannot_start_says_why(
    scripted: ModelSettings, reached: Callable[[Gateway], AnyGateway], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_process, "MAX_STARTS", 1)
    with (
        opened(replace(scripted, calls="/no/calls.jsonl")) as gateway,
        pytest.raises(ModelError, match="No such file or directory"),
    ):
        trial(reached(gateway)).complete(ASK)


# Does in a cell what code of a model could do to spend: it looks for sockets, tokens and keys, and asks.
INTRUDER = """
import glob, json, socket

def read(path):
    try:
        return open(path, "rb").read()
    except OSError:
        return b""

def ask(token):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(FOLDER + "/socket")
    try:
        connection.sendall(b"\\n".join([token, ASKED.encode(), b'{"messages": []}']))
        return connection.recv(1000)
    except ConnectionError:
        return b""

paths = [*glob.glob(FOLDER + "/*"), *glob.glob("/proc/[0-9]*/environ"), *glob.glob("/proc/[0-9]*/cmdline")]
print(ask(b""), ask(b"t0ken"), ask(b"x" * 10_000_000),
      [path for path in paths if b"t0ken" + b"-of-the-run" in read(path)])
"""


def test_code_in_a_local_sandbox_cannot_spend(scripted: ModelSettings) -> None:
    with opened(scripted) as gateway, started(LocalSandbox()) as kernel:
        model = trial(gateway)
        assert model.complete(ASK).text == "one"
        mine = {"name": "mine/1.0", "task": "mine", "epoch": 1, "token_limit": None, "cost_limit": None}
        asked = {
            "route": asdict(COMMON.routes[0]),
            "headers": {},
            "trial": mine,
            "sign_of_life": 1,
            "size": 16,
        }
        given = f"FOLDER, ASKED = {str(gateway.folder)!r}, {json.dumps(asked)!r}"
        said = kernel.execute(f"{given}\n{INTRUDER}", timeout=30)
        assert said.text == "b'' b'' b'' []\n"
        assert model.complete(ASK).text == "two"
    assert len(read_lines(Path(scripted.calls))) == 2
