"""Gemini's protocol at the model door: to a model of Google unchanged, to others converted."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from pytest_super.model.gateway_process import Gateway
from tests.integration.test_model_door import Door, door_to, gateway_for
from tests.openai_server import OpenAIServer, running_server

ASK = "What is the accuracy of the model?"
USAGE = {"prompt_tokens": 1000, "completion_tokens": 10, "cached_tokens": 600}
CALL = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"code": "1 + 1"}'}}
SCHEMA = {"type": "object", "properties": {"code": {"type": "string"}}}
RUN = {"name": "run", "description": "runs code", "parametersJsonSchema": SCHEMA}
REQUEST = {
    "contents": [{"role": "user", "parts": [{"text": ASK}]}],
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "tools": [{"functionDeclarations": [RUN]}],
    "generationConfig": {"temperature": 1, "topK": 64, "thinkingConfig": {"includeThoughts": True}},
}


@pytest.fixture(scope="module")
def module_server() -> Iterator[OpenAIServer]:
    with running_server() as server:
        yield server


@pytest.fixture(scope="module")
def gateways(
    module_server: OpenAIServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Gateway]]:
    folder = tmp_path_factory.mktemp("run")
    with (
        gateway_for("openai/gpt-4o", module_server, folder / "openai.jsonl", timeout=3) as one,
        gateway_for("gemini/gemini-2.5-flash", module_server, folder / "gemini.jsonl", timeout=3) as two,
    ):
        yield {"openai": one, "gemini": two}


@pytest.fixture
def server(module_server: OpenAIServer) -> OpenAIServer:
    module_server.requests.clear()
    module_server.pause = 0.0
    module_server.always("an answer")
    return module_server


door = door_to("openai", "gemini")
to_gemini, to_openai = door_to("gemini"), door_to("openai")


def ask(door: Door, method: str = "generateContent", **fields: Any) -> httpx.Response:
    url = f"{door.url}/v1beta/models/any-model:{method}"
    headers = {"x-goog-api-key": door.token}
    return httpx.post(url, json={**REQUEST, **fields}, headers=headers, timeout=30, verify=False)


def parts_in(body: dict[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = body["candidates"][0]["content"]["parts"]
    return parts


def events_in(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.headers["content-type"] == "text/event-stream"
    return [json.loads(line.removeprefix("data: ")) for line in response.text.splitlines() if line]


def test_an_answer_has_its_text_its_usage_and_its_price(door: Door) -> None:
    door.server.always({"text": "the answer", "usage": USAGE})
    body = ask(door).json()
    assert parts_in(body) == [{"text": "the answer"}]
    assert body["usageMetadata"]["promptTokenCount"] == 1000
    assert (door.budget.prompt_tokens, door.budget.completion_tokens) == (1000, 10)
    assert door.budget.cost_usd is not None
    assert door.budget.cost_usd > 0


def test_a_stream_adds_up_to_the_answer(door: Door) -> None:
    door.server.always({"text": "one two three", "tool_calls": [CALL], "usage": USAGE})
    *events, last = events_in(ask(door, "streamGenerateContent?alt=sse"))
    parts = [part for event in [*events, last] for part in parts_in(event)]
    assert "".join(part.get("text", "") for part in parts) == "one two three"
    (call,) = [part["functionCall"] for part in parts if "functionCall" in part]
    assert (call["name"], call["args"]) == ("run", {"code": "1 + 1"})
    assert last["candidates"][0]["finishReason"] == "STOP"
    assert door.budget.prompt_tokens == 1000


def test_a_model_of_google_gets_the_request_as_it_is(to_gemini: Door) -> None:
    ask(to_gemini, cachedContent=None, labels={"a": "b"}, model="another", generation_config={"topK": 3})
    received = to_gemini.server.requests[-1]
    assert received.body == {**REQUEST, "generationConfig": {"topK": 3}}
    assert received.headers["x-goog-api-key"] != to_gemini.token
    assert to_gemini.token not in str(received.headers)


def test_what_google_had_cached_costs_less(to_gemini: Door) -> None:
    costs = []
    for cached in (0, 600):
        to_gemini.server.always({"text": "x", "usage": {**USAGE, "cached_tokens": cached}})
        before = to_gemini.budget.cost_usd or 0.0
        ask(to_gemini)
        costs.append((to_gemini.budget.cost_usd or 0.0) - before)
    assert costs[1] < costs[0]
    assert to_gemini.budget.used.cached_tokens == 600


def test_events_come_as_google_sends_them(to_gemini: Door) -> None:
    to_gemini.server.always({"text": "one two", "reasoning_content": "let me see"})
    texts = [parts_in(event) for event in events_in(ask(to_gemini, "streamGenerateContent?alt=sse"))]
    assert texts == [[{"text": "let me see", "thought": True}], [{"text": "one "}], [{"text": "two"}], []]


def test_the_next_request_has_what_the_tools_printed(to_openai: Door) -> None:
    called = {"functionCall": {"id": "c1", "name": "run", "args": {"code": "1"}}}
    result = {"functionResponse": {"id": "c1", "name": "run", "response": {"output": "17"}}}
    turns = [{"role": "model", "parts": [called]}, {"role": "user", "parts": [result]}]
    ask(to_openai, contents=[*REQUEST["contents"], *turns])
    system, user, turn, tool = to_openai.asked["messages"]
    assert (system["content"], user["content"]) == ("Be brief.", ASK)
    assert turn["tool_calls"][0]["function"] == {"name": "run", "arguments": '{"code": "1"}'}
    assert tool == {"role": "tool", "tool_call_id": "call_1", "content": "17"}
    assert to_openai.asked["tools"][0]["function"]["parameters"] == SCHEMA


def test_what_google_would_run_is_removed_and_named(door: Door) -> None:
    tools = [{"functionDeclarations": [RUN]}, {"googleSearch": {}}, {"url_context": {}}]
    assert ask(door, tools=tools).status_code == 200
    assert "google" not in json.dumps(door.asked["tools"]).lower()
    assert "googleSearch, urlContext" in door.endpoint.note


WRONG: list[dict[str, Any]] = [
    {"contents": [{"parts": [{"file_data": {"file_uri": "https://a.b/c"}}]}]},
    {"cachedContent": "cachedContents/1"},
    {"contents": "a"},
    {"contents": [{"parts": 5}, {"role": [1]}]},
    {"tools": [{"functionDeclarations": 5}]},
    {"toolConfig": {"functionCallingConfig": {"mode": [1], "allowedFunctionNames": 5}}},
]


def test_wrong_requests_are_the_programs_own_mistake(door: Door) -> None:
    for fields in WRONG:
        answer = ask(door, **fields)
        told = None if answer.status_code == 200 else answer.json()["error"]["status"]
        assert (answer.status_code, told) in ((200, None), (400, "INVALID_ARGUMENT")), fields
        assert door.endpoint.failure is None, fields


def test_tokens_are_counted_by_an_estimate(door: Door) -> None:
    counted = ask(door, "countTokens").json()["totalTokens"]
    whole = {"contents": None, "generateContentRequest": {"model": "models/x", **REQUEST}}
    assert ask(door, "countTokens", **whole).json()["totalTokens"] == counted
    assert 10 <= counted <= 200
    assert door.budget.prompt_tokens == 0


def test_the_list_of_models_is_googles(to_openai: Door) -> None:
    headers = {"x-goog-api-key": to_openai.token}
    with httpx.Client(base_url=f"{to_openai.url}/v1beta", headers=headers, verify=False) as client:
        (card,) = client.get("/models").json()["models"]
        assert client.get(f"/{card['name']}").json() == card


def test_a_stream_as_an_array_is_not_offered(to_openai: Door) -> None:
    answer = ask(to_openai, "streamGenerateContent")
    assert answer.status_code == 404
    assert "streamGenerateContent?alt=sse" in answer.json()["error"]["message"]


def test_a_broken_stream_is_booked_and_ends_with_an_error(to_gemini: Door) -> None:
    to_gemini.server.always(
        {"text": "one two three", "tool_calls": [CALL], "usage": USAGE, "breaks_at": "finishReason"}
    )
    *_, last = events_in(ask(to_gemini, "streamGenerateContent?alt=sse"))
    assert last["error"]["status"] == "INTERNAL"
    booked = to_gemini.model.booked_usage(timeout=30)
    assert booked is not None
    assert booked.prompt_tokens == 1000
    assert to_gemini.endpoint.failure is None


def test_a_spent_budget_has_the_form_of_the_protocol(to_openai: Door) -> None:
    to_openai.endpoint.spent = "tokens"
    answer = ask(to_openai)
    assert (answer.status_code, answer.json()["error"]["status"]) == (403, "PERMISSION_DENIED")
