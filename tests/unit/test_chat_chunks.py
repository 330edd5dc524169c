"""The chunks of a stream add up to the answer, whatever servers leave out and repeat."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.model.protocols.chat.stream import replay, whole
from pytest_super.model.protocols.protocol import END_MARK, StreamError

TEXT = st.text(max_size=20)
CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.from_regex("[a-z]{3}", fullmatch=True),
            "type": st.just("function"),
            "function": st.fixed_dictionaries({"name": st.just("run"), "arguments": TEXT}),
        }
    ),
    min_size=1,
    max_size=3,
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": st.none() | TEXT},
    optional={"reasoning_content": TEXT.filter(bool), "tool_calls": CALLS, "refusal": TEXT.filter(bool)},
)
COMMON = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m"}


def chunk(delta: dict[str, Any], reason: str | None = None, index: int = 0) -> dict[str, Any]:
    choice = {"index": index, "delta": delta, "finish_reason": reason}
    return {**COMMON, "object": "chat.completion.chunk", "choices": [choice]}


def message_of(*deltas: dict[str, Any]) -> dict[str, Any]:
    body = whole([*map(chunk, deltas), chunk({}, "stop")])
    assert body is not None
    message: dict[str, Any] = body["choices"][0]["message"]
    return message


@given(messages=st.lists(MESSAGES, min_size=1, max_size=3))
def test_the_chunks_of_an_answer_add_up_to_it(messages: list[dict[str, Any]]) -> None:
    choices = [
        {"index": index, "message": message, "finish_reason": "stop"}
        for index, message in enumerate(messages)
    ]
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    body = {**COMMON, "choices": choices, "usage": usage}
    *chunks, done = replay(body, {"stream_options": {"include_usage": True}})
    assert done == END_MARK
    assert whole(chunks) == body
    # Without the last choice's end, the stream has broken off.
    assert whole(chunks[:-2]) is None


def test_ids_and_names_that_servers_repeat_are_no_pieces() -> None:
    pieces = [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "run", "arguments": half}}
        for half in ('{"x"', ": 1}")
    ]
    (call,) = message_of(*({"role": "assistant", "tool_calls": [piece]} for piece in pieces))["tool_calls"]
    assert (call["id"], call["function"]) == ("a", {"name": "run", "arguments": '{"x": 1}'})


def test_an_id_of_a_piece_alone_begins_no_call() -> None:
    pieces = [
        {"index": 0, "id": "a", "function": {"name": "run", "arguments": '{"x"'}},
        {"index": 0, "id": "b", "function": {"name": None, "arguments": ": 1}"}},
    ]
    (call,) = message_of(*({"tool_calls": [piece]} for piece in pieces))["tool_calls"]
    assert call["function"] == {"name": "run", "arguments": '{"x": 1}'}


@pytest.mark.parametrize("index", [0, None])
def test_calls_that_all_have_the_same_index_are_several(index: int | None) -> None:
    """As Gemini sends them."""
    calls = [{"id": id, "type": "function", "function": {"name": "run", "arguments": "{}"}} for id in "abc"]
    one, *others = [{"index": index, **call} for call in calls]
    assert message_of({"tool_calls": [one]}, {"tool_calls": others})["tool_calls"] == calls


def test_what_later_chunks_leave_empty_stays() -> None:
    """Azure ends a stream with what its content filter has found."""
    found = {"index": 0, "finish_reason": None, "content_filter_offsets": {"end": 3}}
    body = whole([chunk({"content": "a"}, "stop"), {**COMMON, "id": "", "model": "", "choices": [found]}])
    assert body is not None
    assert (body["id"], body["model"]) == (COMMON["id"], COMMON["model"])
    assert body["choices"][0]["finish_reason"] == "stop"


def test_calls_without_an_index_are_whole() -> None:
    calls = [{"id": id, "function": {"name": "run", "arguments": "{}"}} for id in "ab"]
    found = message_of({"tool_calls": [calls[0]]}, {"tool_calls": [calls[1]]})["tool_calls"]
    assert found == [{**call, "type": "function"} for call in calls]


@pytest.mark.parametrize("place", [{}, {"index": None}, {"index": 0}])
def test_pieces_without_an_id_or_an_index_belong_to_the_last_call_begun(place: dict[str, Any]) -> None:
    pieces = [
        piece
        for id in "ab"
        for piece in (
            {**place, "id": id, "function": {"name": "run", "arguments": ""}},
            {**place, "function": {"arguments": f'{{"{id}"'}},
            {"function": {"arguments": ": 1}"}},
        )
    ]
    calls = message_of(*({"tool_calls": [piece]} for piece in pieces))["tool_calls"]
    found = [(call["id"], call["function"]["arguments"]) for call in calls]
    assert found == [("a", '{"a": 1}'), ("b", '{"b": 1}')]


def test_a_call_without_arguments_has_empty_ones() -> None:
    (call,) = message_of({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "run"}}]})["tool_calls"]
    assert call["function"]["arguments"] == ""


def test_fields_that_only_one_provider_knows_are_kept() -> None:
    details = [{"index": 0, "type": "reasoning.text", "text": text} for text in ("I ", "think")]
    message = message_of(*({"reasoning_details": [each]} for each in details), {"annotations": [{"a": 1}]})
    assert message["reasoning_details"] == [{"index": 0, "type": "reasoning.text", "text": "I think"}]
    assert message["annotations"] == [{"a": 1}]


def test_what_a_stream_without_an_answer_cost_is_known() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 0}
    body = whole([{**COMMON, "choices": [], "usage": usage}])
    assert body is not None
    assert (body["choices"], body["usage"]) == ([], usage)
    assert whole([]) is None


@pytest.mark.parametrize(
    ("delta", "reason"),
    [({"content": "a"}, "stop"), ({"tool_calls": [{"index": 0, "id": "a"}]}, "tool_calls")],
)
def test_a_stream_that_gives_no_reason_for_its_end_has_a_mark_of_it(
    delta: dict[str, Any], reason: str
) -> None:
    body = whole([chunk(delta), END_MARK])
    assert body is not None
    assert body["choices"][0]["finish_reason"] == reason
    assert whole([chunk(delta)]) is None


def test_an_error_in_a_stream_is_one() -> None:
    with pytest.raises(StreamError):
        whole([chunk({"content": "a"}), {"error": {"message": "overloaded"}}])
