"""Chat completions of providers with protocols of their own: litellm asks them, for whole answers."""

import asyncio
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from pytest_super.model.completion import RETRIED, Answer, Failure, ModelCallError, Usage
from pytest_super.model.known_model import KnownModel
from pytest_super.model.named_model import NamedModel
from pytest_super.model.protocols.common import COMMON
from pytest_super.model.provider import Asked
from tests.openai_server import KEY, MEANINGS, Fault, OpenAIServer

CLAUDE, GEMINI = "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash"
# Not every version of litellm knows them.
PRICES = {"input_cost_per_token": 3e-6, "cache_read_input_token_cost": 3e-7, "output_cost_per_token": 1.5e-5}
MESSAGES = [{"role": "user", "content": "What is the accuracy?"}]
TOOL = {"type": "function", "function": {"name": "run", "parameters": {"type": "object", "properties": {}}}}
CALLS = [
    {"id": id, "type": "function", "function": {"name": "run", "arguments": arguments}}
    for id, arguments in (("c1", '{"code": "1"}'), ("c2", "{}"))
]


@pytest.fixture(params=[CLAUDE, GEMINI])
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def ask(
    server: OpenAIServer, model: str, *, parameters: dict[str, Any] | None = None, **fields: Any
) -> Answer:
    path = "/models/gemini-2.5-flash" if model == GEMINI else ""
    given = {
        "api_base": server.http.url_for(path).rstrip("/"),
        "api_key": KEY,
        **PRICES,
        **(parameters or {}),
    }
    request = {**given, "messages": MESSAGES, **fields}
    return asyncio.run(NamedModel(model, given).ask(Asked(COMMON, request, request), 1))


def failure_of(server: OpenAIServer, model: str, **parameters: Any) -> ModelCallError:
    with pytest.raises(ModelCallError) as caught:
        ask(server, model, parameters=parameters)
    return caught.value


def test_an_answer_has_all_its_parts(openai_server: OpenAIServer, model: str) -> None:
    usage = {"prompt_tokens": 3000, "completion_tokens": 40, "cached_tokens": 1000}
    said = {"text": "an answer\n" + 300 * "ha ", "tool_calls": CALLS}
    openai_server.reply({**said, "usage": usage})
    answer = ask(openai_server, model, tools=[TOOL], max_tokens=99)
    message = answer.body["choices"][0]["message"]
    assert message["content"] == said["text"]
    assert [call["function"] for call in message["tool_calls"]] == [call["function"] for call in CALLS]
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (3000, 40)
    assert (answer.usage.cached_tokens, answer.is_counted) == (1000, False)
    assert answer.usage.cost_usd == pytest.approx(2000 * 3e-6 + 1000 * 3e-7 + 40 * 1.5e-5)
    (request,) = openai_server.requests
    assert KEY in " ".join(request.headers.values())


@pytest.mark.skipif(Version(version("litellm")) < Version("1.70"), reason="litellm knows no thoughts")
def test_thoughts_are_apart_from_the_text(openai_server: OpenAIServer, model: str) -> None:
    openai_server.reply({"text": "an answer", "reasoning_content": "I think"})
    message = ask(openai_server, model).body["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("an answer", "I think")


def test_a_provider_that_never_finishes_is_abandoned(openai_server: OpenAIServer, model: str) -> None:
    for kind in ("hang", "trickle"):
        openai_server.reply(Fault(kind))
        error = failure_of(openai_server, model, timeout=0.5)
        assert (error.failure, error.usage) == (Failure.TRANSIENT, Usage()), kind
        assert error.message == f"{model}: no answer within 0.5 s", kind


FAULTS = [
    *MEANINGS,
    ("html", Failure.UNCLEAR, None),
    ("reset", Failure.TRANSIENT, None),
    ("truncated", Failure.UNCLEAR, None),
]


def test_each_fault_is_a_failure_of_its_kind(openai_server: OpenAIServer, model: str) -> None:
    for kind, failure, status in FAULTS:
        openai_server.requests.clear()
        openai_server.always(Fault(kind, retry_after=7))
        error = failure_of(openai_server, model)
        assert error.failure is failure, kind
        start = f"{model} answered {status}: " if status else f"{model}: "
        assert error.message.startswith(start), kind
        assert KEY not in error.message, kind
        assert error.is_final == (failure not in RETRIED), kind
        if failure is Failure.RATE_LIMITED:
            assert error.retry_after == 7
        # litellm's own client sends a request again whose connection broke.
        assert len(openai_server.requests) == 1 or kind == "reset", kind


def test_a_server_that_is_down_is_named_without_the_key(openai_server: OpenAIServer, model: str) -> None:
    error = failure_of(openai_server, model, api_base="http://127.0.0.1:9/models/m")
    assert error.failure is Failure.TRANSIENT
    assert error.message.startswith(f"{model}: the connection to http://127.0.0.1:9")
    assert "failed: Connect call failed" in error.message
    assert KEY not in error.message


def test_what_litellm_reads_is_kept_whatever_the_port_of_a_server_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = KnownModel("deepseek/m", {"api_base": "http://localhost:1/v1"})
    monkeypatch.setattr("pytest_super.model.known_model.import_litellm", NotImplemented)
    again = KnownModel("deepseek/m", {"api_base": "http://localhost:23/v1"})
    assert (again.provider, again.supported) == ("deepseek", first.supported)
    assert again.base == "http://localhost:23/v1"
    for other in ("http://localhost:1/v2", "http://elsewhere:1/v1"):
        with pytest.raises(TypeError):
            KnownModel("deepseek/m", {"api_base": other})
