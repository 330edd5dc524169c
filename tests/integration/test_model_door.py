"""The model door: the clients of OpenAI and Anthropic ask it, and a gateway asks a local provider."""

import json
import socket
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import pytest

from pytest_super.model.client import GatewayModel
from pytest_super.model.gateway_process import Gateway
from pytest_super.model.protocols.registry import environment
from pytest_super.model.settings import ModelSettings
from pytest_super.programs.trial_server import TrialServer
from pytest_super.store.answers import read_answers
from pytest_super.tasks.task import Limits
from pytest_super.trial.budget import Budget
from pytest_super.trial.model_endpoint import ModelEndpoint
from tests.openai_server import OpenAIServer, running_server
from tests.waiting import until

ASK = "What is the accuracy of the model?"
QUESTION = [{"role": "user", "content": ASK}]
CALL = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"code": "1 + 1"}'}}
SCHEMA = {"type": "object", "properties": {"code": {"type": "string"}}}
FUNCTION = {"type": "function", "name": "run", "parameters": SCHEMA}
TOOL = {"name": "run", "description": "runs code", "input_schema": SCHEMA}
OUTPUT = "the output 17"
CLAUDE = "anthropic/claude-sonnet-4-5"
USAGE = {"prompt_tokens": 1000, "completion_tokens": 10, "cached_tokens": 600}


@dataclass
class Door:
    """The door of one trial."""

    server: OpenAIServer
    endpoint: ModelEndpoint
    model: GatewayModel
    budget: Budget
    url: str
    token: str
    calls: Path
    clients: ExitStack

    @cached_property
    def openai(self) -> Any:
        import openai  # Not at the top, as below: each worker collects this module, and it takes seconds.

        return self._client(openai, openai.OpenAI)

    @cached_property
    def anthropic(self) -> Any:
        import anthropic

        return self._client(anthropic, anthropic.Anthropic)

    def _client(self, library: Any, kind: Any) -> Any:
        """One that takes its address and its key from the environment."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment(self.url, self.token).items():
                patch.setenv(name, value)
            http = library.DefaultHttpxClient(verify=False)
            return self.clients.enter_context(kind(max_retries=0, http_client=http))

    def post(self, path: str, body: dict[str, Any], **headers: str) -> httpx.Response:
        headers |= {"Authorization": f"Bearer {self.token}"}
        # Each would read the certificates of the machine.
        return httpx.post(self.url + path, json=body, headers=headers, timeout=30, verify=False)

    @property
    def asked(self) -> dict[str, Any]:
        """The body of the last request that came to the provider."""
        return self.server.requests[-1].body


@pytest.fixture(scope="module")
def module_server() -> Iterator[OpenAIServer]:
    with running_server() as server:
        yield server


@contextmanager
def gateway_for(model: str, server: OpenAIServer, calls: Path, **parameters: Any) -> Iterator[Gateway]:
    settings = ModelSettings(
        name=model,
        parameters=parameters,
        max_cost=None,
        calls=str(calls),
        record=str(calls.parent / "record"),
        is_for_program=True,
    )
    with closing(Gateway(f"test-{uuid.uuid4().hex[:8]}", settings, "t0ken")) as gateway:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in server.environment.items():
                patch.setenv(name, value)
            gateway.start()
        gateway.connect().close()
        yield gateway


@pytest.fixture(scope="module")
def gateways(
    module_server: OpenAIServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Gateway]]:
    """By provider. They take seconds to start, and trials share nothing in them."""
    folder = tmp_path_factory.mktemp("run")
    with (
        gateway_for("openai/gpt-4o", module_server, folder / "openai.jsonl", timeout=3) as one,
        gateway_for(CLAUDE, module_server, folder / "anthropic.jsonl", timeout=3) as two,
    ):
        yield {"openai": one, "anthropic": two}


@pytest.fixture
def server(module_server: OpenAIServer) -> OpenAIServer:
    module_server.requests.clear()
    module_server.pause = 0.0
    module_server.always("an answer")
    return module_server


@contextmanager
def door_of(gateway: Gateway, server: OpenAIServer, **limits: Any) -> Iterator[Door]:
    tokens = limits.pop("tokens", 10**6)
    budget = Budget(Limits(**limits), tokens=tokens)
    budget.start_metering(float)
    model = GatewayModel(
        gateway,
        task=uuid.uuid4().hex[:8],
        epoch=1,
        rerun=0,
        token_limit=lambda: budget.tokens_allowed,
        cost_limit=None,
        seconds_left=budget.wall_left,
    )
    endpoint = ModelEndpoint(model, budget)
    calls = Path(gateway.settings.calls)
    with TrialServer(endpoint.answer) as trial, ExitStack() as clients:
        yield Door(server, endpoint, model, budget, trial.url, trial.token, calls, clients)


def door_to(*providers: str) -> Any:
    """A fixture: one protocol passes through to a provider, the others are converted."""

    @pytest.fixture(params=providers)
    def door(
        request: pytest.FixtureRequest, gateways: dict[str, Gateway], server: OpenAIServer
    ) -> Iterator[Door]:
        with door_of(gateways[request.param], server) as door:
            yield door

    return door


door = door_to("openai", "anthropic")
to_openai, to_anthropic = door_to("openai"), door_to("anthropic")


# Answers, whichever the provider


def test_an_answer_has_its_text_its_usage_and_its_price(door: Door) -> None:
    door.server.always({"text": "the answer", "usage": USAGE})
    response = door.openai.responses.create(model="any", input=ASK)
    assert (response.output_text, response.usage.input_tokens) == ("the answer", 1000)
    assert (door.budget.prompt_tokens, door.budget.completion_tokens) == (1000, 10)
    assert door.budget.cost_usd is not None
    message = door.anthropic.messages.create(model="any", max_tokens=100, messages=QUESTION)
    assert [block.text for block in message.content] == ["the answer"]
    assert (message.stop_reason, message.usage.output_tokens) == ("end_turn", 10)


def test_a_stream_of_a_response_adds_up_to_it(door: Door) -> None:
    door.server.always({"text": "one two three", "reasoning_content": "let me see", "tool_calls": [CALL]})
    with door.openai.responses.stream(model="any", input=ASK, tools=[FUNCTION]) as stream:
        kinds = [event.type for event in stream]
        response = stream.get_final_response()
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert "response.output_text.delta" in kinds
    calls = [item for item in response.output if item.type == "function_call"]
    assert [(call.name, call.call_id, call.arguments) for call in calls] == [
        ("run", "c1", '{"code": "1 + 1"}')
    ]


def test_a_stream_of_a_message_adds_up_to_it(door: Door) -> None:
    door.server.always({"text": "one two three", "tool_calls": [CALL]})
    asked = [{"role": "user", "content": ASK}]
    with door.anthropic.messages.stream(model="any", max_tokens=100, messages=asked, tools=[TOOL]) as stream:
        text = "".join(stream.text_stream).replace(" ", "")
        message = stream.get_final_message()
    assert text == "onetwothree"
    assert message.content[-1].to_dict() == {
        "type": "tool_use",
        "id": "c1",
        "name": "run",
        "input": {"code": "1 + 1"},
    }
    assert message.stop_reason == "tool_use"


def test_a_conversation_with_tools_reaches_every_provider(door: Door) -> None:
    """What a model said and what its tools printed come in the next request, in both protocols."""
    items = [
        {"role": "user", "content": ASK},
        {"type": "function_call", "call_id": "c1", "name": "run", "arguments": '{"code": "1"}'},
        {"type": "function_call_output", "call_id": "c1", "output": OUTPUT},
    ]
    messages = [
        {"role": "user", "content": ASK},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "run", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": OUTPUT}]},
    ]
    for path, body in (
        ("responses", {"instructions": "be brief", "tools": [FUNCTION], "input": items}),
        ("messages", {"max_tokens": 100, "system": "be brief", "tools": [TOOL], "messages": messages}),
    ):
        assert door.post(PATHS[path], body).status_code == 200
        request = json.dumps(door.asked)
        assert all(text in request for text in (ASK, "be brief", '"run"', "c1", OUTPUT)), path


def test_the_models_are_listed_for_both_clients(door: Door) -> None:
    (of_openai,) = door.openai.models.list().data
    (of_anthropic,) = door.anthropic.models.list().data
    assert of_openai.id == of_anthropic.id == door.model.name
    assert door.openai.models.retrieve("gpt-9").id == "gpt-9"


# What passes through


def test_a_response_passes_through_as_it_is(to_openai: Door) -> None:
    thought = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    edit = {"type": "custom_tool_call", "call_id": "c9", "name": "apply_patch", "input": "*** Begin"}
    request = {
        "input": [{"type": "message", "role": "developer", "content": "x"}, thought, edit],
        "tools": [FUNCTION, {"type": "custom", "name": "apply_patch", "description": "edits"}],
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto"},
        "prompt_cache_key": "k",
        "client_metadata": {"a": "b"},
        "store": False,
    }
    sent = {**request, "model": "any", "stream": True, "api_base": "http://thief", "made_up": 1}
    response = to_openai.post("/v1/responses", sent)
    assert to_openai.asked == {**request, "model": "gpt-4o", "stream": True}
    assert "response.of_next_year" in response.text


def test_a_message_passes_through_as_it_is(to_anthropic: Door) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s1"}
    request = {
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}],
            },
            {"role": "assistant", "content": [thought, {"type": "text", "text": "y"}]},
            {"role": "system", "content": "in the middle"},
        ],
        "system": [{"type": "text", "text": "s"}],
        "max_tokens": 8000,
        "thinking": {"type": "adaptive"},
        "context_management": {"edits": []},
        "output_config": {"effort": "high"},
        "metadata": {"user_id": "u"},
        "tools": [TOOL],
    }
    sent = {**request, "model": "any", "api_base": "thief"}
    to_anthropic.post("/v1/messages?beta=true", sent, **{"anthropic-beta": "one-2026,two-2026"})
    assert to_anthropic.asked == {**request, "model": "claude-sonnet-4-5", "stream": True}
    headers = to_anthropic.server.requests[-1].headers
    assert headers["anthropic-beta"] == "one-2026,two-2026"
    assert to_anthropic.token not in str(headers)


def test_events_come_as_the_provider_sends_them(to_openai: Door) -> None:
    to_openai.server.pause = 0.2
    to_openai.server.always({"text": "one two three four five"})
    headers = {"Authorization": f"Bearer {to_openai.token}"}
    for name in ("chat", "responses"):
        body = {"model": "any", "stream": True, "input": ASK, "messages": QUESTION}
        with httpx.stream(
            "POST", to_openai.url + PATHS[name], json=body, headers=headers, verify=False
        ) as response:
            times = [time.monotonic() for line in response.iter_lines() if PART[name] in line]
        assert len(times) >= 5
        assert times[-1] - times[0] > 0.5


def test_a_client_gets_the_usage_of_its_stream_if_it_asks_for_it(to_openai: Door) -> None:
    to_openai.server.always({"text": None, "tool_calls": [CALL], "usage": USAGE})
    completions = to_openai.openai.chat.completions
    quiet = list(completions.create(model="any", messages=QUESTION, stream=True))
    assert all(chunk.choices for chunk in quiet)
    with completions.stream(model="any", messages=QUESTION, stream_options={"include_usage": True}) as stream:
        answer = stream.get_final_completion()
    assert answer.usage.prompt_tokens == USAGE["prompt_tokens"]
    (call,) = answer.choices[0].message.tool_calls
    assert (call.id, call.function.name, call.function.arguments) == ("c1", "run", '{"code": "1 + 1"}')


def test_events_that_follow_closely_come_together(to_openai: Door) -> None:
    to_openai.server.pause = 0.01
    words = [f"word{number} " for number in range(100)]
    to_openai.server.always({"text": "".join(words)})
    body = {"model": "any", "input": ASK, "stream": True}
    headers = {"Authorization": f"Bearer {to_openai.token}"}
    url = f"{to_openai.url}/v1/responses"
    with httpx.stream("POST", url, json=body, headers=headers, verify=False) as response:
        pieces = list(response.iter_raw())
    text = b"".join(pieces).decode()
    assert [word for word in words if f'"delta": "{word}"' not in text] == []
    # The provider has sent a hundred, in more than a second.
    assert 5 < len(pieces) < 50


@pytest.mark.slow
def test_the_first_part_of_the_first_answer_lets_other_calls_begin(tmp_path: Path) -> None:
    with (
        running_server() as server,
        gateway_for("openai/gpt-4o", server, tmp_path / "calls.jsonl") as gateway,
        ThreadPoolExecutor(2) as pool,
    ):
        server.always({"text": "one two", "stops_at": "response.completed"})
        with door_of(gateway, server) as one, door_of(gateway, server) as other:
            streams = [pool.submit(stream_of, door, "/v1/responses") for door in (one, other)]
            # Earlier than calls begin of themselves when the first has no answer.
            until(lambda: len(server.requests) == 2, 4)
            server.release()
            assert ["one " in stream.result() for stream in streams] == [True, True]


@pytest.fixture(scope="module")
def chosen(module_server: OpenAIServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Its run has parameters of the user's, and a tier."""
    users = {"temperature": 0.5, "max_tokens": 77, "reasoning_effort": "high", "service_tier": "flex"}
    calls = tmp_path_factory.mktemp("run") / "calls.jsonl"
    with gateway_for("openai/gpt-4o", module_server, calls, **users) as gateway:
        yield gateway


@pytest.mark.slow
def test_the_parameters_of_a_program_win_over_the_users(chosen: Gateway, server: OpenAIServer) -> None:
    with door_of(chosen, server) as door:
        door.openai.responses.create(model="any", input=ASK, temperature=0.1)
        expected = {"temperature": 0.1, "max_output_tokens": 77, "reasoning": {"effort": "high"}}
        assert expected.items() <= door.asked.items()
        door.openai.chat.completions.create(
            model="any", messages=[{"role": "user", "content": ASK}], temperature=0.1
        )
        assert (door.asked["temperature"], door.asked["max_tokens"]) == (0.1, 77)


@pytest.mark.slow
def test_the_run_alone_chooses_a_tier_and_nothing_is_stored(
    gateways: dict[str, Gateway], chosen: Gateway, server: OpenAIServer, tmp_path: Path
) -> None:
    asked = {"model": "any", "service_tier": "priority", "store": True, "speed": "fast", "max_tokens": 9}
    asked |= {"messages": QUESTION, "input": ASK}
    with gateway_for(CLAUDE, server, tmp_path / "calls.jsonl", service_tier="flex") as claude:
        tiers = ((None,), (None,), ("flex",), (None, "flex"))
        for gateway, possible in zip((*gateways.values(), chosen, claude), tiers, strict=True):
            with door_of(gateway, server) as door:
                for path in PATHS.values():
                    assert door.post(path, asked).status_code == 200
                    assert door.asked.get("store", "input" in door.asked) is False  # OpenAI keeps responses
                    assert door.asked.get("speed") is None
                    assert door.asked.get("service_tier") in possible


# What is refused, and what is left out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "fields", "named"),
    [
        ("/v1/responses", {"input": ASK, "previous_response_id": "resp_1"}, "previous_response_id"),
        ("/v1/responses", {"input": ASK, "background": True}, "background"),
        ("/v1/responses", {"input": [{"type": "item_reference", "id": "x"}]}, "item_reference"),
        (
            "/v1/responses",
            {
                "input": [
                    {"role": "user", "content": [{"type": "input_image", "image_url": "http://a/b.png"}]}
                ]
            },
            "image_url",
        ),
        ("/v1/responses", {}, "input"),
        ("/v1/messages", {"messages": [], "max_tokens": 9}, "messages"),
        (
            "/v1/messages",
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "image", "source": {"type": "url", "url": "http://a/b.png"}}],
                    }
                ]
            },
            "source",
        ),
        ("/v1/messages", {"messages": [{"role": "user", "content": "x"}], "container": "c"}, "container"),
    ],
)
def test_what_changes_the_meaning_is_refused_by_name(
    door: Door, path: str, fields: dict[str, Any], named: str
) -> None:
    response = door.post(path, {"model": "any", **fields})
    assert response.status_code == 400
    assert named in response.json()["error"]["message"]
    assert door.server.requests == []
    assert door.endpoint.failure is None


def test_hosted_tools_are_removed_and_named_once(door: Door) -> None:
    search = {"type": "web_search"}
    for _ in range(2):
        door.post("/v1/responses", {"input": ASK, "tools": [FUNCTION, search], "tool_choice": search})
    assert "web_search" not in json.dumps(door.asked)
    fetch = {"type": "web_fetch_20250910", "name": "web_fetch"}
    asked = {"model": "any", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
    door.post("/v1/messages", {**asked, "tools": [TOOL, fetch], "mcp_servers": [{"url": "http://a"}]})
    assert "web_fetch" not in json.dumps(door.asked)
    assert "http://a" not in json.dumps(door.asked)
    tools = "web_search, web_fetch_20250910, mcp_servers"
    told = f"[Removed from the program's requests: {tools}, which the provider would run.]"
    assert door.endpoint.note == told


def test_hosted_tools_of_chat_completions_are_removed_as_well(door: Door) -> None:
    asked = {"model": "any", "messages": [{"role": "user", "content": ASK}]}
    function = {"type": "function", "function": {"name": "run", "parameters": SCHEMA}}
    tools: list[dict[str, Any]] = [
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "mcp", "server_url": "https://evil.example/sse", "server_label": "x"},
        {"googleSearch": {}},
        {"type": "function", "function": {"name": "f"}, "googleSearch": {}},
    ]
    notes = []
    for tool in tools:
        assert door.post("/v1/chat/completions", {**asked, "tools": [function, tool]}).status_code == 200
        assert "run" in json.dumps(door.asked["tools"]), tool
        assert len(door.asked["tools"]) == 1, tool
        assert "mcp_servers" not in door.asked, tool
        notes.append(door.endpoint.note)
    # Each is named.
    assert len(set(notes)) == 4
    assert "Removed from the program's requests" in notes[0]


def test_a_function_is_the_programs_own_tool_whatever_its_name(door: Door) -> None:
    asked = {"model": "any", "max_tokens": 9, "messages": QUESTION, "input": ASK}
    for name in ("web_search", "bash_20250124"):
        function = {"name": name, "parameters": SCHEMA}
        for path, tool in (
            ("/v1/responses", {"type": "function", **function}),
            ("/v1/chat/completions", {"type": "function", "function": function}),
            ("/v1/messages", {"name": name, "input_schema": SCHEMA}),
            ("/v1/messages", {"type": "custom", "name": name, "input_schema": SCHEMA}),
        ):
            assert door.post(path, {**asked, "tools": [tool]}).status_code == 200
            assert f'"name": "{name}"' in json.dumps(door.asked["tools"]), path
            assert not door.endpoint.note, path


def test_a_typed_tool_is_the_programs_own_by_its_whole_name(to_anthropic: Door) -> None:
    for type, is_clients in {
        "bash_20250124": True,
        "text_editor_20250728": True,
        "tool_search_tool_bm25_20251119": True,
        "bash_code_execution_20250825": False,
        "computer_use_remote": False,
        "custom_connector_20270101": False,
        "web_search_20250305": False,
    }.items():
        tool = {"type": type, "name": "it"}
        to_anthropic.post("/v1/messages", {"max_tokens": 9, "messages": QUESTION, "tools": [TOOL, tool]})
        assert (tool in to_anthropic.asked["tools"]) == is_clients, type
        assert (type in to_anthropic.endpoint.note) != is_clients, type


def test_tools_that_an_item_of_the_conversation_adds_are_removed_as_well(to_openai: Door) -> None:
    remote = {"type": "mcp", "server_url": "https://evil.example/sse"}
    shell = {"type": "shell", "environment": {"type": "container_auto"}, "execution": "client"}
    item = {"type": "additional_tools", "role": "developer", "tools": [FUNCTION, remote, shell]}
    to_openai.post("/v1/responses", {"input": [{"role": "user", "content": ASK}, item]})
    assert to_openai.asked["input"][1]["tools"] == [FUNCTION]
    assert "mcp, shell" in to_openai.endpoint.note


WRONG_TYPES: dict[str, list[dict[str, Any]]] = {
    "/v1/responses": [
        {"input": ASK, "tools": [{"type": []}]},
        {"input": ASK, "tools": 5},
        {"input": ASK, "text": {"format": "json"}},
        {"input": [{"type": "function_call_output", "output": [[5]]}]},
    ],
    "/v1/messages": [
        {"messages": [{"role": "user", "content": [{"type": "image", "source": [1]}]}]},
        {"messages": QUESTION, "tool_choice": {"type": [1]}},
        {"messages": QUESTION, "output_config": {"effort": [1]}},
    ],
    "/v1/chat/completions": [{"messages": QUESTION, "tools": [[]]}],
}


def test_fields_of_wrong_types_are_the_programs_own_mistake(door: Door) -> None:
    for path, wrong in WRONG_TYPES.items():
        for fields in wrong:
            assert door.post(path, {"model": "any", **fields}).status_code in (200, 400), fields
            assert door.endpoint.failure is None, fields


def test_an_odd_header_is_the_programs_own_mistake(to_anthropic: Door) -> None:
    body = {"messages": [{"role": "user", "content": ASK}], "max_tokens": 9}
    for beta in ("caf\u00e9".encode("latin-1"), b"a;b: c"):
        headers = {b"x-api-key": to_anthropic.token.encode(), b"anthropic-beta": beta}
        answer = httpx.post(f"{to_anthropic.url}/v1/messages", json=body, headers=headers, verify=False)
        assert answer.status_code == 400, beta
        assert to_anthropic.endpoint.failure is None, beta
        assert to_anthropic.server.requests == [], beta


@pytest.mark.parametrize(("kind", "words"), [("context", "prompt is too long"), ("filter", "safety")])
def test_failures_have_the_form_of_the_protocol(to_anthropic: Door, kind: str, words: str) -> None:
    to_anthropic.server.always(to_anthropic.server.fault(kind, retry_after=0))
    asked = {"model": "any", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
    answer = to_anthropic.post("/v1/messages", asked)
    assert (answer.status_code, answer.json()["type"]) == (400, "error")
    assert words in answer.json()["error"]["message"]


def test_tokens_are_counted_by_an_estimate(to_openai: Door) -> None:
    asked = [{"role": "user", "content": "word " * 1000}]
    counted = to_openai.post("/v1/messages/count_tokens", {"messages": asked}).json()
    assert 1000 <= counted["input_tokens"] <= 1500
    assert to_openai.budget.prompt_tokens == 0
    to_openai.endpoint.spent = "tokens"
    answer = to_openai.post("/v1/messages/count_tokens", {"messages": asked})
    assert (answer.status_code, answer.json()["type"]) == (403, "error")


# Streams that do not come to their end


def stream_of(door: Door, path: str) -> str:
    asked = {"input": ASK} if path == "/v1/responses" else {"messages": [{"role": "user", "content": ASK}]}
    return door.post(path, {"model": "any", "stream": True, **asked}).text


PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
PROVIDERS = {"chat": "openai", "responses": "openai", "messages": "anthropic"}
# Of the provider's events: the first with a part of the answer, one of its parts, and the last.
FIRST = {"chat": "role", "responses": "response.output_item.added", "messages": "content_block_start"}
LAST = {"chat": "finish_reason", "responses": "response.completed", "messages": "message_stop"}
# What the program sees of a part, of the end, and of an error.
PART = {"chat": '"content":', "responses": "response.output_text.delta", "messages": "content_block_delta"}
END = {"chat": "data: [DONE]", "responses": "event: response.completed", "messages": "event: message_stop"}
ERROR = {"chat": 'data: {"error"', "responses": "event: response.failed", "messages": "event: error"}


@pytest.fixture(params=PATHS)
def own(
    request: pytest.FixtureRequest, gateways: dict[str, Gateway], server: OpenAIServer
) -> Iterator[tuple[str, Door]]:
    """A protocol's name, and a door to a provider that speaks it."""
    with door_of(gateways[PROVIDERS[request.param]], server) as door:
        yield request.param, door


def test_a_stream_that_breaks_off_ends_with_an_error(own: tuple[str, Door]) -> None:
    name, door = own
    door.server.always({"text": "one two", "breaks_at": LAST[name]})
    text = stream_of(door, PATHS[name])
    assert PART[name] in text
    assert text.count(ERROR[name]) == 1
    assert END[name] not in text
    assert len(door.server.requests) == 1
    # The program can ask again, and pays for what it got.
    assert door.endpoint.failure is None
    booked = door.model.booked_usage(timeout=30)
    assert booked is not None
    assert booked.prompt_tokens > 0
    door.server.always("an answer")
    assert END[name] in stream_of(door, PATHS[name])


def test_streams_that_break_off_again_and_again_end_the_trial(to_openai: Door) -> None:
    to_openai.server.always({"text": "one two", "breaks_at": LAST["chat"]})
    for _ in range(5):
        stream_of(to_openai, PATHS["chat"])
        assert to_openai.endpoint.failure is None
    stream_of(to_openai, PATHS["chat"])
    assert "broke off" in str(to_openai.endpoint.failure)


def test_a_broken_stream_is_retried_for_a_client_that_wants_none(own: tuple[str, Door]) -> None:
    name, door = own
    door.server.reply({"text": "one two", "breaks_at": LAST[name]})
    # The provider's answer is a stream, whatever the client wants.
    asked = {"messages": [{"role": "user", "content": ASK}], "max_tokens": 9}
    fields = {"input": ASK} if name == "responses" else asked
    assert door.post(PATHS[name], {"model": "any", **fields}).status_code == 200
    assert len(door.server.requests) == 2


@pytest.mark.long
def test_programs_that_do_not_read_hold_up_no_other_trial(
    gateways: dict[str, Gateway], server: OpenAIServer
) -> None:
    server.always({"text": "word" * 400_000})
    body = json.dumps({"input": ASK, "stream": True}).encode()
    with door_of(gateways["openai"], server) as idle, door_of(gateways["openai"], server) as other:
        place = httpx.URL(idle.url)
        head = f"POST /v1/responses HTTP/1.1\r\nAuthorization: Bearer {idle.token}\r\n"
        data = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        idlers = [socket.create_connection((place.host, place.port), timeout=30) for _ in range(40)]
        for connection in idlers:
            connection.sendall(data)
        until(lambda: len(server.requests) >= 33, 60)
        server.always("an answer")
        assert other.openai.responses.create(model="any", input=ASK).output_text == "an answer"
        for connection in idlers:
            connection.close()
        # None of their calls may come to the provider in the next test.
        idle.model.booked_usage(timeout=30)


def test_an_error_before_the_first_part_is_retried(own: tuple[str, Door]) -> None:
    name, door = own
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    door.server.reply({"text": "x", "fails_at": FIRST[name], "with": error})
    text = stream_of(door, PATHS[name])
    assert END[name] in text
    assert "busy" not in text
    assert len(door.server.requests) == 2


def test_a_stream_that_spends_the_budget_is_booked_and_its_end_is_withheld(
    gateways: dict[str, Gateway], server: OpenAIServer
) -> None:
    for name, path in PATHS.items():
        server.always({"text": "one two", "usage": USAGE})
        with door_of(gateways[PROVIDERS[name]], server, tokens=500) as door:
            text = stream_of(door, path)
            assert PART[name] in text
            assert END[name] not in text
            assert "the trial's tokens budget is spent" in text
            assert (door.endpoint.spent, door.budget.prompt_tokens) == ("tokens", 1000)
            assert (
                door.post(path, {"input": ASK, "messages": [{"role": "user", "content": ASK}]}).status_code
                == 403
            )


def test_a_stream_that_the_wall_limit_cuts_is_booked(
    gateways: dict[str, Gateway], server: OpenAIServer
) -> None:
    server.always({"text": "one two three four five six", "usage": USAGE})
    server.pause = 0.2
    with door_of(gateways["openai"], server, wall=0.8) as door:
        text = stream_of(door, "/v1/responses")
        assert "response.completed" not in text
        assert door.endpoint.spent == "wall"
        booked = door.model.booked_usage(timeout=30)
        assert booked is not None
        assert booked.prompt_tokens == 1000


def test_whole_calls_are_recorded_in_their_protocol(to_openai: Door) -> None:
    to_openai.post("/v1/responses", {"input": "a question to record"})
    folder = to_openai.calls.parent / "record"
    name = to_openai.model.trial.name
    answers = read_answers(folder / name / "answers.jsonl")
    assert answers.asked(1)["input"] == "a question to record"
    assert answers.calls[1].end["answer"]["object"] == "response"
