"""Requests and answers of Responses, Messages and Gemini as chat completions, and back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.model.completion import ModelCallError
from pytest_super.model.protocols.exchange import exchange
from pytest_super.model.protocols.gemini import Gemini
from pytest_super.model.protocols.messages import Messages
from pytest_super.model.protocols.messages import stream as messages_events
from pytest_super.model.protocols.protocol import WireProtocol
from pytest_super.model.protocols.responses import Responses

RESPONSES, MESSAGES, GEMINI = Responses(), Messages(), Gemini()
PROTOCOLS = pytest.mark.parametrize("protocol", [RESPONSES, MESSAGES, GEMINI], ids=lambda each: each.name)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def or_odd(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return usual | VALUES


def objects_of(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects in which each field is left out, as usual, or anything."""
    return st.fixed_dictionaries({}, optional={name: or_odd(usual) for name, usual in fields.items()})


def list_of(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return or_odd(st.lists(or_odd(usual), max_size=3))


TEXT = st.text(max_size=5)
PARTS = list_of(objects_of(type=st.sampled_from(["text", "output_text", "refusal"]), text=TEXT, refusal=TEXT))
FUNCTIONS = objects_of(name=st.sampled_from(["run", "patch"]), arguments=st.just('{"input": 1}'))
THOUGHTS = objects_of(
    type=st.sampled_from(["thinking", "redacted_thinking"]), thinking=TEXT, signature=TEXT, data=TEXT
)
CHAT_MESSAGES = objects_of(
    content=PARTS,
    refusal=TEXT,
    reasoning_content=TEXT,
    thinking_blocks=list_of(THOUGHTS),
    tool_calls=list_of(objects_of(id=TEXT, type=st.just("function"), function=or_odd(FUNCTIONS))),
).filter(lambda value: isinstance(value, dict))
USAGES = objects_of(
    prompt_tokens=st.integers(),
    prompt_tokens_details=objects_of(cached_tokens=st.integers()),
    completion_tokens=st.integers(),
)
REASONS = st.sampled_from(["stop", "tool_calls", "length"])
ITEMS = objects_of(
    id=TEXT,
    type=st.sampled_from(
        ["message", "reasoning", "function_call", "custom_tool_call", "tool_search_call", "web_search_call"]
    ),
    content=PARTS,
    summary=PARTS,
    encrypted_content=TEXT,
    name=TEXT,
    namespace=TEXT,
    arguments=TEXT,
    input=TEXT,
)
BLOCKS = objects_of(
    type=st.sampled_from(["text", "thinking", "tool_use"]),
    text=TEXT,
    thinking=TEXT,
    signature=TEXT,
    id=TEXT,
    name=TEXT,
    input=VALUES,
)


def answer(message: dict[str, Any], finish_reason: Any = "stop", **others: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}}
    return {"id": "1", "model": "m", "choices": [{**choice, "finish_reason": finish_reason}], **others}


def call(name: Any = "run", arguments: Any = '{"a": 1}') -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


def events_of(protocol: WireProtocol, body: dict[str, Any]) -> list[dict[str, Any]]:
    texts = protocol.events(body, {})
    return [json.loads(f"\n{text}".partition("\ndata: ")[2]) for text in texts]


def from_responses(items: list[dict[str, Any]], **others: Any) -> dict[str, Any]:
    return RESPONSES.to_chat({"input": items, **others})


def output(number: int, parts: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": parts}


def of_function(number: int) -> dict[str, Any]:
    return {"type": "function_call", "call_id": f"call_{number}", "name": "look", "arguments": "{}"}


# Long conversations and streams


@pytest.mark.timeout(30)
def test_many_items_of_one_turn_are_joined_at_once() -> None:
    item = {"type": "message", "role": "assistant", "content": "x" * 100}

    (message,) = from_responses([item] * 200_000)["messages"]

    assert message["content"] == "\n".join(["x" * 100] * 200_000)


def stream_of(block: dict[str, Any], deltas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 3}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ]


def test_pieces_are_added_to_their_blocks() -> None:
    used = {"type": "tool_use", "id": "t", "name": "run", "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ('{"a"', ": [1", "]}")]

    body = messages_events.whole(stream_of(used, deltas))
    without = messages_events.whole(stream_of({**used, "input": {"a": 2}}, []))

    assert body is not None
    assert without is not None
    assert body["content"] == [{**used, "input": {"a": [1]}}]
    assert without["content"] == [{**used, "input": {"a": 2}}]


# Requests


def test_images_come_after_the_last_result_of_parallel_calls() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA"}
    user = {"role": "user", "content": "Go on."}
    outputs = [output(1, [{"type": "input_text", "text": "a"}, image]), output(2, [image]), output(3, "c")]

    found = from_responses([*map(of_function, (1, 2, 3)), *outputs, user])["messages"]

    assert [each["role"] for each in found] == ["assistant", "tool", "tool", "tool", "user", "user"]
    assert [each["content"] for each in found[1:4]] == ["a", "", "c"]
    assert found[4]["content"] == [{"type": "image_url", "image_url": {"url": image["image_url"]}}] * 2


@pytest.mark.parametrize("strict", [True, False])
def test_strict_functions_stay_strict(strict: bool) -> None:
    tool = {"name": "run", "strict": strict}
    schema = {"type": "object", "properties": {}}

    of_responses = from_responses([], tools=[{**tool, "type": "function", "parameters": schema}])
    of_messages = MESSAGES.to_chat({"messages": [], "tools": [{**tool, "input_schema": schema}]})

    expected = {**tool, "description": "", "parameters": schema}
    assert [each["function"] for each in of_responses["tools"]] == [expected]
    assert [each["function"] for each in of_messages["tools"]] == [expected]


def test_a_failed_call_of_a_tool_says_so() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "no file"}]}
    turns = [{"role": "user", "content": [{**result, "is_error": True}, {**result, "is_error": False}]}]

    found = MESSAGES.to_chat({"messages": turns})["messages"]

    assert [each["content"] for each in found] == ["[error] no file", "no file"]


PATCH = {"type": "custom", "name": "patch"}
SPACE = {"type": "namespace", "name": "files", "tools": [PATCH]}
SEARCH = {"type": "tool_search", "execution": "client", "description": "finds tools"}


def test_tools_that_an_item_offers_can_be_called() -> None:
    request = {"input": [{"type": "additional_tools", "role": "developer", "tools": [SPACE]}]}

    chat = RESPONSES.to_chat(request)
    called = RESPONSES.from_chat(answer({"tool_calls": [call("files__patch", '{"input": "+a"}')]}), request)

    assert [tool["function"]["name"] for tool in chat["tools"]] == ["files__patch"]
    assert chat["messages"] == []
    (item,) = called["output"]
    expected = {"type": "custom_tool_call", "namespace": "files", "name": "patch", "input": "+a"}
    assert expected.items() <= item.items()


def test_a_search_for_tools_is_a_call_whose_result_names_them() -> None:
    body = RESPONSES.from_chat(
        answer({"tool_calls": [call("tool_search", '{"query": "x"}')]}), {"input": [], "tools": [SEARCH]}
    )
    (item,) = body["output"]
    found = {"type": "tool_search_output", "call_id": "call_1", "tools": [SPACE]}

    chat = from_responses([item, found, {**found, "tools": []}], tools=[SEARCH])

    assert (item["type"], item["execution"], item["arguments"]) == (
        "tool_search_call",
        "client",
        {"query": "x"},
    )
    assert [tool["function"]["name"] for tool in chat["tools"]] == ["tool_search", "files__patch"]
    assert chat["messages"][0]["tool_calls"] == [call("tool_search", '{"query": "x"}')]
    assert [message["content"] for message in chat["messages"][1:]] == [
        "Functions that you can call now: files__patch",
        "No tools were found.",
    ]
    assert RESPONSES.said(body, {})["tool_calls"] == [call("tool_search", '{"query": "x"}')]


@pytest.mark.parametrize(("removed", "choices"), [([], ["auto"]), ([{"type": "web_search"}], [])])
def test_the_choice_of_a_tool_stays_unless_there_is_none_left(removed: list[Any], choices: list[str]) -> None:
    item = {"type": "additional_tools", "role": "developer", "tools": [SPACE] if not removed else []}
    request = {"input": [item], "tool_choice": "auto", **({"tools": removed} if removed else {})}

    accepted, _ = RESPONSES.accepted(request, is_open=False)

    assert [accepted[name] for name in ("tool_choice",) if name in accepted] == choices


# Answers


def test_a_refusal_is_a_part_of_responses() -> None:
    body = RESPONSES.from_chat(answer({"refusal": "I cannot."}), {})
    part = {"type": "refusal", "refusal": "I cannot."}
    events = events_of(RESPONSES, body)

    assert [item["content"] for item in body["output"]] == [[part]]
    assert [event["type"] for event in events[3:7]] == [
        "response.content_part.added",
        "response.refusal.delta",
        "response.refusal.done",
        "response.content_part.done",
    ]
    assert events[3]["part"] == {"type": "refusal", "refusal": ""}
    assert events[4]["delta"] == events[5]["refusal"] == "I cannot."
    assert RESPONSES.said(body, {})["content"] == "I cannot."
    # It comes back with the conversation.
    assert from_responses(body["output"])["messages"] == [{"role": "assistant", "content": "I cannot."}]


@pytest.mark.parametrize(
    ("finish_reason", "calls", "expected"),
    [
        ("stop", [call()], "tool_use"),
        ("tool_calls", [call()], "tool_use"),
        (None, [call()], "tool_use"),
        ("length", [call()], "max_tokens"),
        ("stop", None, "end_turn"),
        ("stop", [], "end_turn"),
    ],
)
def test_an_answer_with_calls_stops_for_them(finish_reason: Any, calls: Any, expected: str) -> None:
    body = MESSAGES.from_chat(answer({"tool_calls": calls}, finish_reason), {})

    assert body["stop_reason"] == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"input": "ls"}', "ls"),
        ('{"input": {"a": 1}}', '{"a": 1}'),
        ('{"input": null}', "null"),
        ("ls", "ls"),
    ],
)
def test_the_input_of_a_custom_tool_is_text(arguments: str, expected: str) -> None:
    request = {"tools": [{"type": "custom", "name": "run"}]}

    body = RESPONSES.from_chat(answer({"tool_calls": [call(arguments=arguments)]}), request)

    assert [item["input"] for item in body["output"]] == [expected]


def test_odd_contents_and_arguments_of_providers_are_understood() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    chat = answer({"content": parts, "tool_calls": [call(arguments={"a": 1}), call(arguments=None)]})

    of_responses, of_messages = RESPONSES.from_chat(chat, {}), MESSAGES.from_chat(chat, {})
    told = exchange([], chat["choices"][0]["message"])

    assert of_responses["output"][0]["content"][0]["text"] == of_messages["content"][0]["text"] == "a\nb"
    assert [item["arguments"] for item in of_responses["output"][1:]] == ['{"a": 1}', "{}"]
    assert [block["input"] for block in of_messages["content"][1:]] == [{"a": 1}, {}]
    assert [each["arguments"] for each in told["tool_calls"]] == ['{"a": 1}', "{}"]


@PROTOCOLS
@given(message=CHAT_MESSAGES, reason=or_odd(REASONS), usage=or_odd(USAGES))
def test_any_answer_of_a_provider_is_converted(
    protocol: WireProtocol, message: Any, reason: Any, usage: Any
) -> None:
    chat = answer(message, reason, usage=usage)
    request = {"tools": [{"type": "custom", "name": "patch"}], "contents": []}

    body = protocol.from_chat(chat, request)

    assert events_of(protocol, body)
    assert protocol.whole(events_of(protocol, body)) is not None
    assert exchange([], protocol.said(body, request))
    assert exchange([], message)


@given(output=list_of(ITEMS), usage=or_odd(USAGES))
def test_any_answer_of_responses_is_told(output: Any, usage: Any) -> None:
    body = {"id": "1", "status": "completed", "output": output, "usage": usage}

    assert events_of(RESPONSES, body)
    assert exchange([], RESPONSES.said(body, {}))


@given(content=list_of(BLOCKS), usage=or_odd(USAGES))
def test_any_answer_of_messages_is_told(content: Any, usage: Any) -> None:
    body = {"id": "1", "content": content, "usage": usage}

    assert events_of(MESSAGES, body)
    assert exchange([], MESSAGES.said(body, {}))


SAID = st.text(min_size=1, max_size=20)
CALLED = st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers(), max_size=3)


@PROTOCOLS
@given(text=SAID, arguments=st.lists(CALLED, max_size=3))
def test_the_text_and_the_calls_of_an_answer_are_kept(
    protocol: WireProtocol, text: str, arguments: list[dict[str, Any]]
) -> None:
    calls = [{**call(arguments=json.dumps(each)), "id": f"c{n}"} for n, each in enumerate(arguments)]
    request: dict[str, Any] = {"contents": []}
    body = protocol.from_chat(answer({"content": text, "tool_calls": calls}), request)

    for told in (body, protocol.whole(events_of(protocol, body))):
        assert told is not None
        said = exchange([], protocol.said(told, request))
        assert said["text"] == text
        assert len({each["id"] for each in said["tool_calls"]}) == len(calls)
        assert [json.loads(each["arguments"]) for each in said["tool_calls"]] == arguments


# Gemini


def gemini_turns(*turns: tuple[str, Any], **others: Any) -> dict[str, Any]:
    contents = [{"role": role, "parts": parts} for role, parts in turns]
    accepted, _ = GEMINI.accepted({"contents": contents, **others}, is_open=False)
    return accepted


def called(name: str = "run", **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {"a": 1}, **fields}}


def resulted(name: str = "run", **fields: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"output": f"of {name}"}, **fields}}


def test_calls_of_gemini_are_named_by_their_place_whatever_ids_a_client_makes() -> None:
    user = ("user", [{"text": "Go."}])
    first = (
        "model",
        [{"text": "I ", "thought": True}, {"text": "loo"}, {"text": "k."}, called(), called("see")],
    )
    results = ("user", [resulted("see", id="see-17"), resulted(), {"text": "Go on."}])
    request = gemini_turns(
        user, first, results, ("model", [called(id="own")]), ("user", [resulted(id="own")])
    )

    _, turn, see, run, more, again, result = GEMINI.to_chat(request)["messages"]
    said = GEMINI.said({"candidates": [{"content": {"parts": [called()]}}]}, request)

    assert (turn["content"], turn["reasoning_content"]) == ("look.", "I ")
    assert [each["id"] for each in turn["tool_calls"]] == ["call_1", "call_2"]
    assert (see["tool_call_id"], see["content"]) == ("call_2", "of see")
    assert (run["tool_call_id"], run["content"]) == ("call_1", "of run")
    assert more == {"role": "user", "content": "Go on."}
    assert again["tool_calls"][0]["id"] == result["tool_call_id"] == "call_3"
    # As it will be in the next request.
    assert [each["id"] for each in said["tool_calls"]] == ["call_4"]


def test_a_request_of_gemini_is_read_in_both_spellings() -> None:
    declared = {
        "name": "run_it",
        "parameters": {"type": "OBJECT", "properties": {"type": {"type": "STRING"}}},
    }
    snake = {
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"function_declarations": [declared], "google_search": {}}, {"code_execution": {}}],
        "tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["run_it"]}},
        "generation_config": {"max_output_tokens": 7, "thinking_config": {"thinking_level": "HIGH"}},
        "contents": [{"parts": [{"inline_data": {"mime_type": "image/png", "data": "AA"}}]}],
        "cached_content": None,
        "service_tier": "flex",
    }

    request, removed = GEMINI.accepted(snake, is_open=False)
    chat = GEMINI.to_chat(request)

    assert removed == ["googleSearch", "codeExecution"]
    assert request["tools"] == [{"functionDeclarations": [declared]}]
    assert "serviceTier" not in request
    assert chat["messages"][0] == {"role": "system", "content": "Be brief."}
    assert chat["messages"][1]["content"][0]["image_url"] == {"url": "data:image/png;base64,AA"}
    assert chat["tools"][0]["function"]["parameters"] == {
        "type": "object",
        "properties": {"type": {"type": "string"}},
    }
    assert chat["tool_choice"] == {"type": "function", "function": {"name": "run_it"}}
    assert (chat["max_tokens"], chat["reasoning_effort"]) == (7, "high")
    assert not GEMINI.has_files(request)
    assert GEMINI.has_files(gemini_turns(("user", [{"inlineData": {"mimeType": "video/mp4", "data": "A"}}])))


@pytest.mark.parametrize(
    ("parts", "others", "expected"),
    [
        ([{"fileData": {"fileUri": "https://a.b/c"}}], {}, "fileData"),
        ([{"file_data": {"file_uri": "https://a.b/c"}}], {}, "fileData"),
        ([{"function_response": {"parts": [{"file_data": {"file_uri": "x"}}]}}], {}, "fileData"),
        ([{"text": "a"}], {"cached_content": "cachedContents/1"}, "cachedContent"),
        ([{"text": "a"}], {"tools": {}}, "tools"),
    ],
)
def test_gemini_fetches_nothing(parts: list[Any], others: dict[str, Any], expected: str) -> None:
    with pytest.raises(ModelCallError, match=expected):
        gemini_turns(("user", parts), **others)


def test_the_users_parameters_are_geminis_where_a_request_is_silent() -> None:
    request = gemini_turns(("user", [{"text": "a"}]), generationConfig={"temperature": 1})
    users = {"temperature": 0.2, "max_tokens": 9, "stop": "x", "reasoning_effort": "low", "api_base": "y"}

    config = GEMINI.with_defaults(request, users)["generationConfig"]

    assert config == {
        "temperature": 1,
        "maxOutputTokens": 9,
        "stopSequences": ["x"],
        "thinkingConfig": {"thinkingLevel": "low"},
    }
