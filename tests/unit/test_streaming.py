"""Whole answers as streams: a client that adds one up has the answer."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_super.model.protocols.chat.stream import replay
from pytest_super.model.protocols.common import COMMON
from pytest_super.model.protocols.protocol import PIECE

WITH_USAGE = {"stream_options": {"include_usage": True}}
TEXTS = st.text(max_size=20) | st.integers(0, 3 * PIECE).map(lambda size: "x" * size)
CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.text(min_size=1, max_size=5),
            "type": st.just("function"),
            "function": st.fixed_dictionaries({"name": st.text(min_size=1, max_size=5), "arguments": TEXTS}),
        }
    ),
    min_size=1,
    max_size=3,
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": st.none() | TEXTS},
    optional={"tool_calls": CALLS, "reasoning_content": TEXTS.filter(bool)},
)


def completion(*messages: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "served",
        "choices": [
            {"index": index, "message": message, "finish_reason": "stop"}
            for index, message in enumerate(messages)
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
        "super": {"cost_usd": 1.0},
    }


@given(st.lists(MESSAGES, min_size=1, max_size=2))
def test_openais_client_gets_the_answer_from_the_stream(messages: list[dict[str, Any]]) -> None:
    # Not at the top: each worker collects this module, and the client takes seconds.
    from openai.lib.streaming.chat import ChatCompletionStreamState
    from openai.types.chat import ChatCompletionChunk

    state = ChatCompletionStreamState()
    *chunks, _done = replay(completion(*messages), WITH_USAGE)
    for chunk in chunks:
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk))
    made = state.get_final_completion()
    assert made.usage is not None
    assert made.usage.total_tokens == 9
    for choice, message in zip(made.choices, messages, strict=True):
        said = choice.message.model_dump()
        for call in said["tool_calls"] or []:
            # What OpenAI's library adds.
            call.pop("index", None)
            call["function"].pop("parsed_arguments", None)
        assert {name: said[name] for name in message} == message
        assert choice.finish_reason == "stop"


@given(MESSAGES)
def test_no_line_is_too_long_for_readers_of_lines(message: dict[str, Any]) -> None:
    assert all(len(event.encode()) < 2**16 for event in COMMON.events(completion(message), {}))


def test_usage_is_sent_on_request() -> None:
    body = completion({"role": "assistant", "content": "text"})
    *_, last, _done = replay(body, WITH_USAGE)
    assert (last["choices"], last["usage"]) == ([], body["usage"])
    assert all("usage" not in chunk for chunk in replay(body, {}))


def test_the_stream_is_one_of_server_sent_events_and_says_that_it_is_done() -> None:
    *parts, done, nothing = "".join(
        COMMON.events(completion({"role": "assistant", "content": "a\n\nb"}), {})
    ).split("\n\n")
    assert (done, nothing) == ("data: [DONE]", "")
    assert all(json.loads(part.removeprefix("data: "))["object"] == "chat.completion.chunk" for part in parts)
