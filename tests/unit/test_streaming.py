"""Whole answers as streams: a client that adds one up has the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.model.streaming import PIECE, chunks, events, wants_usage

TEXTS = st.text(max_size=20) | st.integers(0, 3 * PIECE).map(lambda size: "x" * size)
CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.text(min_size=1, max_size=5),
            "type": st.just("function"),
            "function": st.fixed_dictionaries({"name": st.text(min_size=1, max_size=5), "arguments": TEXTS}),
        }
    ),
    max_size=3,
)
MESSAGES = st.builds(
    lambda content, calls, reasoning: {
        "role": "assistant",
        "content": content,
        **({"tool_calls": calls} if calls else {}),
        **({"reasoning_content": reasoning} if reasoning else {}),
    },
    st.none() | TEXTS,
    CALLS,
    TEXTS,
)


def completion(*messages: dict[str, Any], finish_reason: str = "stop") -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "served",
        "choices": [
            {"index": index, "message": message, "finish_reason": finish_reason}
            for index, message in enumerate(messages)
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
        "super": {"cost_usd": 1.0},
    }


def added_up(deltas: list[dict[str, Any]]) -> dict[str, Any]:
    """The message, made as OpenAI's API reference says that clients make it."""
    message: dict[str, Any] = {}
    for delta in deltas:
        for name, value in delta.items():
            if name == "tool_calls":
                for call in value:
                    add_call(message.setdefault("tool_calls", []), call)
            elif isinstance(value, str) and name != "role":
                message[name] = (message.get(name) or "") + value
            else:
                message.setdefault(name, value)
    return message


def add_call(calls: list[dict[str, Any]], part: dict[str, Any]) -> None:
    part = dict(part)
    index = part.pop("index")
    if index == len(calls):
        calls.append({**part, "function": dict(part["function"])})
    else:
        calls[index]["function"]["arguments"] += part["function"]["arguments"]


@given(st.lists(MESSAGES, min_size=1, max_size=2))
def test_a_client_that_adds_up_the_stream_gets_the_answer(messages: list[dict[str, Any]]) -> None:
    choices = [chunk["choices"][0] for chunk in chunks(completion(*messages))]
    for index, message in enumerate(messages):
        assert added_up([choice["delta"] for choice in choices if choice["index"] == index]) == message


@given(MESSAGES)
def test_no_line_is_too_long_for_readers_of_lines(message: dict[str, Any]) -> None:
    assert all(len(event.encode()) < 2**16 for event in events(completion(message)))


def test_usage_is_sent_on_request() -> None:
    body = completion({"role": "assistant", "content": "text"})
    *_, last = chunks(body, usage=True)
    assert (last["choices"], last["usage"]) == ([], body["usage"])
    assert all("usage" not in chunk for chunk in chunks(body))


@pytest.mark.parametrize(
    ("options", "wanted"),
    [({"include_usage": True}, True), ({}, False), (None, False), (["include_usage"], False)],
)
def test_asking_for_usage_has_one_form(options: Any, wanted: bool) -> None:
    assert wants_usage({"stream": True, "stream_options": options}) is wanted


def test_the_stream_is_one_of_server_sent_events_and_says_that_it_is_done() -> None:
    *parts, done, nothing = "".join(events(completion({"role": "assistant", "content": "a\n\nb"}))).split(
        "\n\n"
    )
    assert (done, nothing) == ("data: [DONE]", "")
    assert all(json.loads(part.removeprefix("data: "))["object"] == "chat.completion.chunk" for part in parts)


def test_openais_own_client_reads_it() -> None:
    openai = pytest.importorskip("openai")
    from openai.lib.streaming.chat import ChatCompletionStreamState

    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    message = {"role": "assistant", "content": "look", "tool_calls": [call]}
    state = ChatCompletionStreamState()
    for chunk in chunks(completion(message, finish_reason="tool_calls"), usage=True):
        state.handle_chunk(openai.types.chat.ChatCompletionChunk.model_validate(chunk))
    made: Any = state.get_final_completion()
    said = made.choices[0].message
    assert (said.content, said.tool_calls[0].function.arguments) == ("look", '{"a": 1}')
    assert (made.choices[0].finish_reason, made.usage.total_tokens) == ("tool_calls", 9)
