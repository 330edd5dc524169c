"""The server of the tests, as OpenAI's own client sees it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Any

import openai
import pytest

from tests.openai_server import KEY, Fault

if TYPE_CHECKING:
    from tests.openai_server import OpenAIServer

MESSAGES: Any = [{"role": "user", "content": "one two"}]
TOOL_CALL = {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": "{}"}}


@pytest.fixture
def client(openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> openai.OpenAI:
    for name, value in openai_server.environment.items():
        monkeypatch.setenv(name, value)
    return openai.OpenAI(max_retries=0)


def ask(client: openai.OpenAI, **fields: Any) -> Any:
    return client.chat.completions.create(**{"model": "m", "messages": MESSAGES, **fields})


def test_queued_answers_come_first_and_in_order(openai_server: OpenAIServer, client: openai.OpenAI) -> None:
    openai_server.always("again")
    openai_server.reply("one", {"text": "two", "finish_reason": "length"})
    choices = [ask(client).choices[0] for _ in range(4)]
    assert [choice.message.content for choice in choices] == ["one", "two", "again", "again"]
    assert choices[1].finish_reason == "length"


def test_a_function_answers_by_the_request(openai_server: OpenAIServer, client: openai.OpenAI) -> None:
    openai_server.by(lambda request: request["messages"][0]["content"].upper())
    assert ask(client).choices[0].message.content == "ONE TWO"


def test_requests_are_kept_with_their_headers(openai_server: OpenAIServer, client: openai.OpenAI) -> None:
    openai_server.always("x")
    ask(client, temperature=0.5)
    [received] = openai_server.requests
    assert received.body == {"model": "m", "messages": MESSAGES, "temperature": 0.5}
    assert received.headers["authorization"] == f"Bearer {KEY}"


def test_a_request_that_no_test_expects_is_refused(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="the test has no answer"):
        ask(client)


def test_a_stream_brings_the_same_in_pieces(openai_server: OpenAIServer, client: openai.OpenAI) -> None:
    text = "a sentence that is longer than one piece of a stream"
    openai_server.reply({"text": text, "tool_calls": [TOOL_CALL]})
    chunks = list(ask(client, stream=True, stream_options={"include_usage": True}))
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == text
    assert [call.function.name for delta in deltas for call in delta.tool_calls or []] == ["run"]
    assert chunks[-2].choices[0].finish_reason == "tool_calls"
    assert chunks[-1].usage.completion_tokens == 11


def test_a_stream_has_no_usage_unless_asked(openai_server: OpenAIServer, client: openai.OpenAI) -> None:
    openai_server.reply("x")
    assert all(chunk.usage is None for chunk in ask(client, stream=True))


def test_models_are_listed(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["test"]


def test_requests_at_once_are_answered_side_by_side(
    openai_server: OpenAIServer, client: openai.OpenAI
) -> None:
    both = Barrier(2, timeout=60)
    openai_server.by(lambda _request: f"answer {both.wait()}")
    with ThreadPoolExecutor() as pool:
        answers = [pool.submit(ask, client) for _ in range(2)]
    texts = {answer.result().choices[0].message.content for answer in answers}
    assert texts == {"answer 0", "answer 1"}


def test_what_hangs_ends_when_it_is_released(openai_server: OpenAIServer, client: openai.OpenAI) -> None:
    openai_server.reply(Fault("hang"))
    openai_server.release()
    with pytest.raises(openai.APIConnectionError):
        ask(client)


def test_an_unknown_fault_is_an_error_of_the_test(openai_server: OpenAIServer) -> None:
    with pytest.raises(ValueError, match="unknown fault '418'"):
        openai_server.fault("418")
