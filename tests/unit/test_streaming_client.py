"""Providers with protocols of their own are asked for streams, of which litellm sees the whole answers."""

from __future__ import annotations

import asyncio
import json
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from packaging.version import Version

from pytest_super.model.completion import Usage
from pytest_super.model.failures import RETRIED, Failure, ModelCallError
from pytest_super.model.litellm_provider import LitellmProvider
from pytest_super.model.protocols.registry import COMMON
from pytest_super.model.streaming_client import as_stream, streaming_client
from tests.openai_server import KEY, MEANINGS, Fault

if TYPE_CHECKING:
    from pytest_super.model.provider import Answer
    from tests.openai_server import OpenAIServer

CLAUDE, GEMINI = "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash"
# The event that has the reason for the end, and the last one.
REASON = {CLAUDE: "message_delta", GEMINI: "finishReason"}
LAST = {**REASON, CLAUDE: "message_stop"}
# Not every version of litellm knows them.
PRICES = {
    "input_cost_per_token": 3e-6,
    "cache_read_input_token_cost": 3e-7,
    "output_cost_per_token": 1.5e-5,
}
MESSAGES = [{"role": "user", "content": "What is the accuracy?"}]
TOOL = {"type": "function", "function": {"name": "run", "parameters": {"type": "object", "properties": {}}}}
CALLS = [
    {"id": id, "type": "function", "function": {"name": "run", "arguments": arguments}}
    for id, arguments in (("c1", '{"code": "1"}'), ("c2", "{}"))
]


@pytest.fixture(params=[CLAUDE, GEMINI])
def model(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


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
    provider = LitellmProvider(model, given)
    # No chunks of theirs could be relayed.
    assert not provider.speaks(COMMON)
    return asyncio.run(provider.complete({"messages": MESSAGES, **fields}, task="t", call=1))


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


def test_an_answer_that_breaks_off_is_none(openai_server: OpenAIServer, model: str) -> None:
    usage = {"prompt_tokens": 500, "completion_tokens": 2}
    broken_off = {"text": "one two", "usage": usage, "breaks_at": REASON[model]}
    openai_server.reply(broken_off, {"breaks_at": REASON[model]})
    broken = failure_of(openai_server, model)
    assert (broken.failure, broken.is_final) == (Failure.TRANSIENT, False)
    assert broken.message == f"{model}: the answer broke off"
    # As its parts say, and of the answer as much as has come.
    assert (broken.usage.prompt_tokens, broken.usage.cached_tokens) == (500, 0)
    assert 0 < broken.usage.completion_tokens < 30
    cost = 500 * 3e-6 + broken.usage.completion_tokens * 1.5e-5
    assert broken.usage.cost_usd == pytest.approx(cost)
    # Nothing of it has come.
    assert failure_of(openai_server, model).usage == Usage()


def test_silence_is_limited_and_no_length(openai_server: OpenAIServer, model: str) -> None:
    openai_server.pause = 0.02
    text = " ".join(map(str, range(40)))
    openai_server.reply({"text": text})
    answer = ask(openai_server, model, parameters={"timeout": 0.5})
    assert answer.body["choices"][0]["message"]["content"] == text
    openai_server.reply({"text": "one two", "stops_at": LAST[model]}, Fault("hang"))
    for used in (True, False):
        error = failure_of(openai_server, model, timeout=0.5)
        assert error.failure is Failure.TRANSIENT
        assert error.message.startswith(f"{model}: no part of an answer for 0.5 s")
        assert bool(error.usage.completion_tokens) is used


@pytest.mark.parametrize(
    ("kind", "failure", "status"),
    [
        *MEANINGS,
        ("html", Failure.UNCLEAR, None),
        ("reset", Failure.TRANSIENT, None),
        ("truncated", Failure.UNCLEAR, None),
    ],
)
def test_each_fault_is_a_failure_of_its_kind(
    openai_server: OpenAIServer, model: str, kind: str, failure: Failure, status: int | None
) -> None:
    openai_server.reply(Fault(kind, retry_after=7))
    error = failure_of(openai_server, model)
    assert error.failure is failure
    assert error.message.startswith(f"{model} answered {status}: " if status else f"{model}: ")
    assert KEY not in error.message
    assert error.is_final == (failure not in RETRIED)
    if failure is Failure.RATE_LIMITED:
        assert error.retry_after == 7
    assert len(openai_server.requests) == 1


def test_a_server_that_is_down_is_named_without_the_key(openai_server: OpenAIServer, model: str) -> None:
    error = failure_of(openai_server, model, api_base="http://127.0.0.1:9/models/m")
    assert error.failure is Failure.TRANSIENT
    assert error.message.startswith(f"{model}: the connection to http://127.0.0.1:9")
    assert "failed: Connect call failed" in error.message
    assert KEY not in error.message


def test_an_error_in_a_stream_is_one(openai_server: OpenAIServer, model: str) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded", "code": 529}}
    openai_server.reply({"text": "one two", "fails_at": LAST[model], "with": error})
    failed = failure_of(openai_server, model)
    assert failed.failure is Failure.TRANSIENT
    assert failed.message == f"{model}: Overloaded"
    assert failed.usage.completion_tokens > 0


def test_an_error_after_a_part_denies_no_other_call(openai_server: OpenAIServer, model: str) -> None:
    error = {"type": "error", "error": {"type": "invalid", "message": "No more", "code": 403}}
    openai_server.reply({"text": "one two", "fails_at": LAST[model], "with": error})
    failed = failure_of(openai_server, model)
    assert (failed.failure, failed.message) == (Failure.REFUSED, f"{model}: No more")
    assert failed.usage.completion_tokens > 0
    assert len(openai_server.requests) == 1


def test_a_server_that_refuses_streams_is_asked_for_whole_answers(
    openai_server: OpenAIServer, model: str
) -> None:
    refused = {"error": {"status": 400, "message": "Streaming is not supported."}}
    whole = {"text": "an answer", "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
    openai_server.reply(refused, whole)
    answer = ask(openai_server, model)
    assert answer.body["choices"][0]["message"]["content"] == "an answer"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (9, 2)


def test_a_server_may_answer_whole_where_a_stream_is_asked_for(
    openai_server: OpenAIServer, model: str
) -> None:
    openai_server.reply({"text": "an answer", "cannot_stream": True})
    answer = ask(openai_server, model)
    assert answer.body["choices"][0]["message"]["content"] == "an answer"
    assert (answer.usage.prompt_tokens, answer.is_counted) == (20, False)


def test_other_requests_have_a_limit_too(openai_server: OpenAIServer, model: str) -> None:
    """litellm asks Gemini what it has cached, for instance."""
    openai_server.reply(Fault("hang"))
    client = streaming_client(model.partition("/")[0], model, silence=0.2, secrets=())

    async def other() -> None:
        await client.post(openai_server.base_url + "/chat/completions", json={})

    with pytest.raises(ModelCallError, match=r"no answer within 0\.2 s") as caught:
        asyncio.run(other())
    assert caught.value.failure is Failure.TRANSIENT


def test_parts_that_make_no_sense_are_booked_by_an_estimate(openai_server: OpenAIServer, model: str) -> None:
    senseless = {"type": "message_delta", "delta": {"text": "x"}, "usage": [1], "usageMetadata": "much"}
    openai_server.reply({"text": "one two", "fails_at": LAST[model], "with": senseless})
    failed = failure_of(openai_server, model)
    assert failed.failure in RETRIED
    assert min(failed.usage.prompt_tokens, failed.usage.completion_tokens) > 0


def test_an_answer_without_end_is_read_up_to_a_limit(
    openai_server: OpenAIServer, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_super.model.answer_size.LARGEST_ANSWER", 2**20)
    openai_server.reply(Fault("endless"))
    error = failure_of(openai_server, model)
    assert error.failure is Failure.TRANSIENT
    assert error.message.endswith("the answer is larger than 1 MiB")


@pytest.mark.parametrize(
    ("path", "streamed"),
    [
        ("/v1/messages?beta=true", "/v1/messages?beta=true"),
        ("/a%2Fb/models/m:generateContent?key=k", "/a%2Fb/models/m:streamGenerateContent?alt=sse&key=k"),
        ("/google/models/m:generateContent", "/google/models/m:streamGenerateContent?alt=sse"),
        ("/publishers/anthropic/models/m:rawPredict", "/publishers/anthropic/models/m:streamRawPredict"),
        ("/publishers/mistralai/models/m:rawPredict", None),
        ("/v1beta/cachedContents", None),
    ],
)
def test_requests_for_answers_become_requests_for_streams(path: str, streamed: str | None) -> None:
    """Those at Vertex are made by litellm only with a key of Google's."""
    body = {"messages": ["é"], "max_tokens": 3}
    request = httpx.Request("POST", f"http://h:1{path}", headers={"x-api-key": "k"}, json=body)
    found = as_stream(request)
    if streamed is None:
        assert found is None
        return
    assert found is not None
    sent, _ = found
    assert str(sent.url) == f"http://h:1{streamed}"
    assert (sent.headers["x-api-key"], sent.headers["host"]) == ("k", "h:1")
    assert int(sent.headers["content-length"]) == len(sent.content)
    assert json.loads(sent.content) == body | ({} if "alt=sse" in streamed else {"stream": True})


@pytest.mark.parametrize(
    ("provider", "model", "is_streamed"),
    [
        ("vertex_ai", "vertex_ai/gemini-2.5-pro", True),
        ("vertex_ai", "vertex_ai/claude-sonnet-4-5", True),
        ("vertex_ai", "vertex_ai/mistral-large", False),
        ("bedrock", "bedrock/anthropic.claude-sonnet-4-5", False),
    ],
)
def test_other_clouds_have_some_of_these_models(provider: str, model: str, is_streamed: bool) -> None:
    assert bool(streaming_client(provider, model, silence=None, secrets=())) is is_streamed
