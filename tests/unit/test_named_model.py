import asyncio
import json
import re
import subprocess
import sys
import tracemalloc
from math import inf
from pathlib import Path
from typing import Any

import pytest

from pytest_super.model import streamed_answer
from pytest_super.model.completion import RETRIED, Answer, Failure, ModelCallError, Usage
from pytest_super.model.named_model import NamedModel
from pytest_super.model.protocols.common import COMMON
from pytest_super.model.protocols.messages import Messages
from pytest_super.model.protocols.responses import Responses
from pytest_super.model.provider import Asked
from pytest_super.model.token_estimate import MaxUsage
from tests.openai_server import ERRORS, KEY, MEANINGS, Fault, OpenAIServer, running_server

MODEL = "openai/gpt-4o"
MESSAGES = [{"role": "user", "content": "What is the accuracy of the model?"}]
REQUEST = {"messages": MESSAGES}
TOOL = {
    "type": "function",
    "function": {"name": "run", "parameters": {"type": "object", "properties": {"code": {"type": "string"}}}},
}
TOOL_CALL = {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": '{"code": "1"}'}}


pytestmark = pytest.mark.usefixtures("openai_environment")


def ask(model: str = MODEL, /, *, parameters: Any = None, **fields: Any) -> Answer:
    accepted, _ = COMMON.accepted({"messages": MESSAGES, **fields}, is_open=True)
    request = {**(parameters or {}), **accepted}
    return asyncio.run(NamedModel(model, parameters).ask(Asked(COMMON, request, request), 1))


def failure_of(model: str = MODEL, /, *, parameters: Any = None, **fields: Any) -> ModelCallError:
    with pytest.raises(ModelCallError) as caught:
        ask(model, parameters=parameters, **fields)
    return caught.value


def text_of(answer: Answer) -> str | None:
    text: str | None = answer.body["choices"][0]["message"]["content"]
    return text


# Answers


@pytest.mark.parametrize(("written", "text"), [("naïve", "naïve"), ("a\ud800b", "a\ufffdb"), (None, None)])
def test_a_text_is_as_written_but_for_lone_surrogates(
    openai_server: OpenAIServer, written: str | None, text: str | None
) -> None:
    openai_server.reply({"text": written})
    assert text_of(ask()) == text


@pytest.mark.parametrize("way", [{}, {"cannot_stream": True}], ids=["stream", "whole"])
def test_an_answer_has_all_its_parts_however_it_comes(
    openai_server: OpenAIServer, way: dict[str, Any]
) -> None:
    other = {**TOOL_CALL, "id": "call_2"}
    usage = {"prompt_tokens": 30, "completion_tokens": 4}
    said = {"text": "an <b>answer</b>\n", "reasoning_content": "I think", "tool_calls": [TOOL_CALL, other]}
    openai_server.reply({**said, "usage": usage, "model": "gpt-4o-x", **way})
    answer = ask(tools=[TOOL])
    message = answer.body["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("an <b>answer</b>\n", "I think")
    assert message["tool_calls"] == [TOOL_CALL, other]
    assert answer.body["choices"][0]["finish_reason"] == "tool_calls"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (30, 4)
    assert (answer.model, answer.is_counted) == ("gpt-4o-x", False)


@pytest.mark.parametrize("way", [{}, {"cannot_stream": True}], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("fields", "cost"),
    [
        ({}, 0.035),
        ({"base_model": "gpt-4o-mini"}, 0.0021),
        ({"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}, 0.012),
    ],
    ids=["its answer's", "the user's choice", "the user's price"],
)
def test_an_answer_is_priced_by_the_model_that_gave_it(
    openai_server: OpenAIServer, way: dict[str, Any], fields: dict[str, Any], cost: float
) -> None:
    """A deployment of Azure, or a model of a router, has any name."""
    usage = {"prompt_tokens": 10_000, "completion_tokens": 1000}
    openai_server.reply({"text": "x", "usage": usage, "model": "gpt-4o-2024-08-06", **way})
    assert ask("openai/my-deployment", parameters=fields).usage.cost_usd == pytest.approx(cost)


@pytest.mark.parametrize("way", [{"breaks_at": "finish_reason"}, {"tool_calls": "run"}])
def test_a_broken_stream_is_priced_by_the_model_that_began_it(
    openai_server: OpenAIServer, way: dict[str, Any]
) -> None:
    async def relay(_events: Any) -> None: ...

    openai_server.reply({"text": "one two", "model": "gpt-4o-2024-08-06", **way})
    provider = NamedModel("openai/my-deployment")
    with pytest.raises(ModelCallError) as caught:
        asyncio.run(provider.ask(Asked(COMMON, REQUEST, REQUEST, relay=relay), 1))
    used = caught.value.usage
    assert used.prompt_tokens > 0
    assert used.cost_usd == pytest.approx(used.prompt_tokens * 2.5e-6 + used.completion_tokens * 1e-5)


def test_a_model_without_chat_completions_is_asked_as_litellm_does(openai_server: OpenAIServer) -> None:
    """By Responses, whose stream litellm itself makes chunks of; old versions do not know that."""
    # litellm imports it there, and does not require it.
    pytest.importorskip("mcp")
    openai_server.reply({"text": "an answer", "usage": {"prompt_tokens": 30, "completion_tokens": 4}})
    answer = ask("openai/o1-pro")
    assert text_of(answer) == "an answer"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (30, 4)


@pytest.mark.parametrize(
    ("provider", "is_streamed"),
    [
        *(
            (name, True)
            for name in ("hosted_vllm", "openrouter", "together_ai", "litellm_proxy", "deepseek", "xai")
        ),
        *((name, False) for name in ("mistral", "nvidia_nim")),
    ],
)
def test_providers_that_speak_as_openai_does_and_state_usages_are_streamed(
    openai_server: OpenAIServer, provider: str, is_streamed: bool
) -> None:
    # A separator of lines for Python, and none for events.
    usage = {"prompt_tokens": 30, "completion_tokens": 4}
    openai_server.reply({"text": "an\u2028answer", "is_raw": True, "tool_calls": [TOOL_CALL], "usage": usage})
    parameters = {"api_base": openai_server.base_url, "api_key": "k"}
    answer = ask(f"{provider}/m", parameters=parameters, tools=[TOOL])
    assert text_of(answer) == "an\u2028answer"
    assert answer.body["choices"][0]["message"]["tool_calls"] == [TOOL_CALL]
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (30, 4)
    assert bool(openai_server.requests[0].body.get("stream")) is is_streamed


def test_what_came_of_a_broken_stream_is_paid_and_may_be_asked_for_again(openai_server: OpenAIServer) -> None:
    openai_server.reply({"text": "one two", "breaks_at": "finish_reason"}, {"text": "", "breaks_at": "role"})
    broken = failure_of()
    assert (broken.failure, broken.is_final) == (Failure.TRANSIENT, False)
    assert broken.usage.prompt_tokens > 0
    assert broken.usage.completion_tokens > 0
    assert broken.usage.cost_usd
    # Nothing of an answer has come.
    assert failure_of().usage == Usage()


@pytest.mark.parametrize(("stops_at", "seconds"), [("role", "0.6"), ("finish_reason", "0.2")])
def test_a_model_may_be_silent_for_longer_before_its_answer_begins(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, stops_at: str, seconds: str
) -> None:
    monkeypatch.setattr("pytest_super.model.streamed_answer.FIRST_PART_SECONDS", 0.6)
    monkeypatch.setattr("pytest_super.model.streamed_answer.SILENCE_SECONDS", 0.2)
    openai_server.reply({"text": "one two", "stops_at": stops_at})
    assert f"no part of an answer for {seconds} s" in failure_of().message


IMPOSSIBLE = {"prompt_tokens": 0, "completion_tokens": 0}
NO_NUMBERS = [None, "many", 30.0, float("nan"), float("inf"), [30], True]


def with_usage(usage: Any) -> dict[str, Any]:
    return {"text": "an answer", "fails_at": "usage", "with": {"choices": [], "usage": usage}}


@pytest.mark.parametrize(
    ("reply", "completion"),
    [
        (Fault("no_usage"), 3),
        ({"text": "an answer", "usage": {"prompt_tokens": -5, "completion_tokens": 3}}, 3),
        ({"text": None, "tool_calls": [TOOL_CALL], "usage": IMPOSSIBLE}, pytest.approx(12, abs=8)),
        ({"text": "an answer", "usage": {"prompt_tokens": 10**400}}, 3),
        ({"text": "an answer", "usage": {"completion_tokens": 10**12}}, 3),
        ({"text": "an answer", "usage": {"completion_tokens_details": {"reasoning_tokens": 10**30}}}, 3),
        *((with_usage(usage), 3) for usage in NO_NUMBERS),
        *(
            ({"text": "an answer", "usage": {name: value}, **way}, 3)
            for name, way in (("prompt_tokens", {}), ("completion_tokens", {"cannot_stream": True}))
            for value in NO_NUMBERS
        ),
    ],
)
def test_usage_that_is_not_reported_or_impossible_is_counted(
    openai_server: OpenAIServer, reply: Any, completion: int
) -> None:
    openai_server.reply(reply)
    answer = ask()
    used = answer.usage
    assert answer.is_counted
    assert 7 < used.prompt_tokens < 20
    assert used.completion_tokens == completion
    assert used.cost_usd == pytest.approx(used.prompt_tokens * 2.5e-6 + used.completion_tokens * 10e-6)
    assert answer.body["usage"]["prompt_tokens"] == used.prompt_tokens


@pytest.mark.parametrize(
    ("provider", "usage", "tokens"),
    [
        ("xai", {"total_tokens": 134, "completion_tokens_details": {"reasoning_tokens": 100}}, (30, 104, 0)),
        ("deepseek", {"prompt_cache_hit_tokens": 20, "prompt_cache_miss_tokens": 10}, (30, 4, 20)),
        ("moonshot", {"cached_tokens": 20}, (30, 4, 20)),
        ("openai", {"total_tokens": 34, "completion_tokens_details": {"reasoning_tokens": 3}}, (30, 4, 0)),
    ],
)
def test_tokens_that_a_provider_states_in_its_own_way_are_read_and_priced(
    openai_server: OpenAIServer, provider: str, usage: dict[str, Any], tokens: tuple[int, int, int]
) -> None:
    prices = {"input_cost_per_token": 3, "cache_read_input_token_cost": 1, "output_cost_per_token": 5}
    openai_server.reply({"text": "x", "usage": {"prompt_tokens": 30, "completion_tokens": 4, **usage}})
    parameters = {"api_base": openai_server.base_url, "api_key": "k", **prices}
    used = ask(f"{provider}/of-{provider}", parameters=parameters).usage
    prompt, completion, cached = tokens
    assert (used.prompt_tokens, used.completion_tokens, used.cached_tokens) == tokens
    assert used.cost_usd == pytest.approx(3 * (prompt - cached) + cached + 5 * completion)


def test_what_is_cached_for_an_hour_costs_twice_the_price_of_a_prompt(openai_server: OpenAIServer) -> None:
    writes = {"ephemeral_5m_input_tokens": 400, "ephemeral_1h_input_tokens": 600}
    native = {"cache_creation_input_tokens": 1000, "cache_creation": writes}
    answers = [{"text": "x", "native_usage": native, **way} for way in ({}, {"breaks_at": "message_delta"})]
    openai_server.reply(*answers)
    provider, asked = NamedModel("anthropic/claude-sonnet-4-5"), Asked(Messages(), REQUEST, REQUEST)
    used = asyncio.run(provider.ask(asked, 1)).usage
    assert used.cost_usd == pytest.approx((20 + 400 * 1.25 + 600 * 2) * 3e-6 + 3 * 15e-6)
    with pytest.raises(ModelCallError) as broken:
        asyncio.run(NamedModel("anthropic/claude-sonnet-4-5").ask(asked, 1))
    used = broken.value.usage
    assert used.cost_usd == pytest.approx((20 + 400 * 1.25 + 600 * 2) * 3e-6 + used.completion_tokens * 15e-6)


OWN_KEY = {"is_byok": True, "cost": 0.25, "cost_details": {"upstream_inference_cost": 2.0}}


@pytest.mark.parametrize("way", [{}, {"cannot_stream": True}], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0.5, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.5}}, 0.5),
        (OWN_KEY, 2.25),
        ({"cost": "0.5"}, None),
        ({"cost": -1}, None),
    ],
)
def test_an_answer_of_openrouter_costs_what_it_says(
    openai_server: OpenAIServer, way: dict[str, Any], usage: dict[str, Any], cost: float | None
) -> None:
    openai_server.reply({"text": "x", "usage": usage, **way})
    parameters = {"api_base": openai_server.base_url, "api_key": "k"}
    assert ask("openrouter/somebody/new", parameters=parameters).usage.cost_usd == cost


UNKNOWN = [
    "404 page not found",
    {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}},
    {"error": {"message": "The model does not exist", "code": "model_not_found"}},
]


@pytest.mark.parametrize("body", UNKNOWN)
def test_a_server_without_responses_is_asked_for_chat_completions_whatever_it_says(
    openai_server: OpenAIServer, body: Any
) -> None:
    openai_server.speaks, openai_server.unknown = frozenset(), body
    openai_server.reply(*["an answer"] * 3)
    asked = Asked(Responses(), {"input": "What?"}, REQUEST)
    provider = NamedModel(MODEL)

    async def both() -> list[Answer]:
        return [await provider.ask(asked, number) for number in (1, 2)]

    assert list(map(text_of, asyncio.run(both()))) == ["an answer"] * 2
    assert ["input" in each.body for each in openai_server.requests] == [True, False, False]


def test_a_server_that_has_answered_in_a_protocol_is_asked_in_it_again(openai_server: OpenAIServer) -> None:
    """OpenAI answers 404 to a request with an item that it does not know."""
    missing = {"error": {"status": 404, "message": "Item 'rs_1' not found."}}
    openai_server.reply("one", missing, "Yes.", "two")
    asked = Asked(Responses(), {"input": "What?"}, REQUEST)
    provider = NamedModel(MODEL)

    async def three() -> list[Answer | BaseException]:
        return [(await asyncio.gather(provider.ask(asked, n), return_exceptions=True))[0] for n in (1, 2, 3)]

    _, failure, _ = asyncio.run(three())
    assert isinstance(failure, ModelCallError)
    place = f"(at {openai_server.base_url}/responses)"
    assert (failure.failure, failure.message.endswith(place)) == (Failure.REFUSED, True)
    assert all("input" in each.body for each in openai_server.requests)


def test_the_cost_of_an_unknown_model_is_unknown(openai_server: OpenAIServer) -> None:
    openai_server.reply("hi", Fault("no_usage"), Fault("empty"))
    assert ask("openai/my-own").usage.cost_usd is None
    assert ask("openai/my-own").usage.cost_usd is None
    assert failure_of("openai/my-own").usage == Usage(prompt_tokens=10, completion_tokens=2)


def test_a_broken_answer_reports_its_usage_if_that_can_be_read(openai_server: OpenAIServer) -> None:
    openai_server.reply(Fault("empty"), Fault("wrong_types"))
    used = failure_of().usage
    assert (used.prompt_tokens, used.completion_tokens) == (10, 2)
    assert used.cost_usd == pytest.approx(10 * 2.5e-6 + 2 * 10e-6)
    assert failure_of().usage == Usage()


ASK = """
import asyncio, sys
from pytest_super.model.named_model import NamedModel
from pytest_super.model.protocols.common import COMMON
from pytest_super.model.provider import Asked
asked = Asked(COMMON, {"messages": [{"role": "user", "content": "What?"}]}, {})
for name in ("openai/gpt-4o", "openai/my-own"):
    print(asyncio.run(NamedModel(name).ask(asked, 1)).usage.cost_usd)
print("litellm" in sys.modules)
"""


@pytest.mark.slow
def test_litellm_is_imported_for_new_models_alone(
    openai_server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    openai_server.reply(*["hi"] * 6)
    costs = [ask(name).usage.cost_usd for name in ("openai/gpt-4o", "openai/my-own")]
    assert costs == [pytest.approx(3.5e-05), None]

    def asked() -> list[str]:
        return subprocess.check_output([sys.executable, "-c", ASK], text=True).split()

    assert asked() == ["2e-05", "None", "False"]
    for kept in tmp_path.rglob("*.json"):
        kept.write_text(kept.read_text()[:-1])
    assert asked() == ["2e-05", "None", "True"]


# The most that a call can use


def most(model: str = MODEL, /, *, parameters: Any = None, **fields: Any) -> MaxUsage:
    request = {**(parameters or {}), "messages": MESSAGES, **fields}
    return NamedModel(model, parameters).max_usage(request)


def test_a_call_costs_no_more_than_its_bound(openai_server: OpenAIServer) -> None:
    usage = {"prompt_tokens": 1034, "completion_tokens": 1500}
    openai_server.reply({"text": "x", "usage": usage})
    asked = most(max_tokens=1500)
    assert asked.prompt_tokens >= 1034
    assert (ask(max_tokens=1500).usage.cost_usd or 0) <= asked.cost_usd < 0.04


def test_the_users_parameters_count_for_the_bound() -> None:
    free = {"input_cost_per_token": 0, "output_cost_per_token": 0}
    # litellm keeps the prices for the rest of the process.
    for model in ("openai/gpt-4-turbo", "openai/my-free"):
        assert most(model, parameters=free).cost_usd == 0
    assert most(parameters={"max_tokens": 9}) == most(max_tokens=9)
    assert most(parameters={"n": 2}).cost_usd > most(parameters={"n": 2}, n=1).cost_usd == most(n=1).cost_usd


@pytest.mark.parametrize("model", ["openai/my-own", "hosted_vllm/gpt-4o", "ollama/nobody-has-it", "nonsense"])
def test_a_model_whose_price_is_not_known_has_no_bound_of_cost(model: str) -> None:
    assert most(model).cost_usd == inf
    assert most(model).prompt_tokens < 2000


# Requests


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        ("openai/gpt-4o", {"temperature": 0.2, "max_tokens": 9, "top_p": 0.9}),
        ("openai/my-own", {"temperature": 0.2, "max_tokens": 9, "top_p": 0.9}),
        ("openai/o3-mini", {"max_completion_tokens": 9}),
        ("openai/gpt-5", {"max_completion_tokens": 9}),
    ],
)
def test_a_parameter_that_the_model_does_not_take_is_dropped(
    openai_server: OpenAIServer, model: str, sent: dict[str, Any]
) -> None:
    openai_server.reply("hi")
    ask(model, parameters={"top_p": 0.9}, temperature=0.2, max_tokens=9, verbosity="low")
    body = openai_server.requests[0].body
    names = ("temperature", "top_p", "max_tokens", "max_completion_tokens")
    assert {name: body[name] for name in names if name in body} == sent


def test_the_user_says_what_is_sent_beyond_what_litellm_knows(openai_server: OpenAIServer) -> None:
    openai_server.reply("hi")
    own = {"api_version": "1", "base_model": "gpt-4o", "input_cost_per_token": 0, "num_retries": 3}
    steering = {
        "allowed_openai_params": ["verbosity"],
        "additional_drop_params": ["top_p"],
        "extra_body": {"guided": 1},
    }
    ask(parameters={**own, **steering, "top_k": 3, "service_tier": "flex"}, verbosity="low", top_p=0.5)
    body = openai_server.requests[0].body
    assert not body.keys() & {*own, *steering, "top_p"}
    assert (body["verbosity"], body["guided"], body["top_k"]) == ("low", 1, 3)
    assert body["service_tier"] == "flex"


@pytest.mark.parametrize(
    ("provider", "keeps_parts", "keeps_marks"),
    [("openai", True, False), ("openrouter", True, True), ("deepseek", False, False)],
)
def test_a_provider_gets_contents_in_the_form_that_it_takes(
    openai_server: OpenAIServer, provider: str, keeps_parts: bool, keeps_marks: bool
) -> None:
    openai_server.reply("hi")
    mark = {"cache_control": {"type": "ephemeral"}}
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b", **mark}]
    parameters = {"api_base": openai_server.base_url, "api_key": "k"}
    messages = [{"role": "user", "content": parts}]
    ask(f"{provider}/m", parameters=parameters, messages=messages, tools=[{**TOOL, **mark}])
    body = openai_server.requests[0].body
    plain = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    expected = parts if keeps_marks else plain if keeps_parts else "a\nb"
    assert body["messages"] == [{"role": "user", "content": expected}]
    assert body["tools"] == [{**TOOL, **mark} if keeps_marks else TOOL]


def test_a_model_that_refuses_streams_is_asked_for_whole_answers(openai_server: OpenAIServer) -> None:
    openai_server.reply({"error": {"status": 400, "message": "Streaming is not supported."}}, "one", "two")
    provider = NamedModel(MODEL)

    async def both() -> list[Answer]:
        return [await provider.ask(Asked(COMMON, REQUEST, REQUEST), n) for n in (1, 2)]

    assert list(map(text_of, asyncio.run(both()))) == ["one", "two"]
    assert [bool(each.body.get("stream")) for each in openai_server.requests] == [True, False, False]


@pytest.mark.parametrize(
    ("variable", "model", "header"),
    [
        ("GROQ_API_BASE", "groq/m", "GROQ_API_KEY"),
        ("OPENROUTER_API_BASE", "openrouter/a/m", "OPENROUTER_API_KEY"),
        ("HOSTED_VLLM_API_BASE", "hosted_vllm/m", "HOSTED_VLLM_API_KEY"),
    ],
)
def test_addresses_and_keys_come_from_the_variables_that_litellm_reads(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, variable: str, model: str, header: str
) -> None:
    monkeypatch.setenv(variable, openai_server.base_url)
    monkeypatch.setenv(header, "the-key")
    openai_server.reply("hi")
    assert text_of(ask(model)) == "hi"
    (request,) = openai_server.requests
    assert request.headers["authorization"] == "Bearer the-key"
    assert request.body["model"] == model.partition("/")[2]


@pytest.mark.parametrize(
    ("headers", "key"),
    [({"Authorization": "Bearer the-users"}, "Bearer the-users"), ({"x-title": "a run"}, "Bearer -")],
)
def test_a_key_can_be_in_a_header_of_the_users(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], key: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    openai_server.reply("hi")
    ask(parameters={"extra_headers": headers})
    assert openai_server.requests[0].headers["authorization"] == key


def test_the_organization_that_pays_is_named(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    openai_server.reply("hi")
    ask()
    headers = openai_server.requests[0].headers
    assert headers["openai-organization"] == "org-1"
    assert "openai-project" not in headers


def test_no_key_goes_to_a_server_that_the_user_did_not_name(openai_server: OpenAIServer) -> None:
    """A provider without an address is not asked at OpenAI's."""
    error = failure_of("hosted_vllm/m")
    assert error.failure is Failure.FATAL
    assert "its address is not known" in error.message
    assert not openai_server.requests


def test_a_redirection_takes_no_key_to_another_server(openai_server: OpenAIServer) -> None:
    with running_server() as other:
        other.always("from elsewhere")
        for path in ("chat/completions", "messages"):
            moved = {"Location": f"{other.base_url}/{path}"}
            anywhere = openai_server.http.expect_request(f"/moved/v1/{path}")
            anywhere.respond_with_data("", status=307, headers=moved)
        url = openai_server.http.url_for("/moved/v1")
        assert text_of(ask("openai/m", parameters={"api_base": url})) == "from elsewhere"
        provider = NamedModel("anthropic/m", {"api_base": url, "api_key": KEY})
        with pytest.raises(ModelCallError, match="has moved: check the base URL"):
            asyncio.run(provider.ask(Asked(Messages(), REQUEST, REQUEST), 1))
    (request,) = other.requests
    assert KEY not in str(request.headers)


@pytest.mark.parametrize(
    ("said", "text", "thought"),
    [
        ({"text": "<think>I think</think>yes"}, "yes", "I think"),
        ({"text": "no <think>x</think>"}, "no <think>x</think>", None),
    ],
)
def test_a_thought_is_apart_from_the_text(
    openai_server: OpenAIServer, said: dict[str, Any], text: str, thought: str | None
) -> None:
    openai_server.reply(said)
    message = ask().body["choices"][0]["message"]
    assert (message["content"], message.get("reasoning_content")) == (text, thought)


@pytest.mark.parametrize(
    "field", ["api_base", "base_url", "api_key", "extra_headers", "mock_response", "model"]
)
def test_a_request_cannot_steer_where_the_key_goes(openai_server: OpenAIServer, field: str) -> None:
    openai_server.reply("from the server")
    assert text_of(ask(**{field: "http://127.0.0.1:9"})) == "from the server"
    assert openai_server.requests[0].body["model"] == "gpt-4o"


def test_only_the_protocols_fields_of_a_message_are_sent(openai_server: OpenAIServer) -> None:
    openai_server.reply("hi")
    message = {"role": "user", "content": "hello", "name": "ann"}
    ask(messages=[{**message, "images": ["http://169.254.169.254/"], "extra": {"step": 3}}])
    assert openai_server.requests[0].body["messages"] == [message]


def test_an_answer_is_whole_and_an_empty_list_of_tools_is_not_sent(openai_server: OpenAIServer) -> None:
    openai_server.reply({"text": "whole", "finish_reason": "length"})
    answer = ask(stream=True, stream_options={"include_usage": True}, tools=[])
    assert text_of(answer) == "whole"
    assert answer.body["choices"][0]["finish_reason"] == "length"
    sent = openai_server.requests[0].body
    assert "tools" not in sent


def image(url: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "image_url", "image_url": url}]}]


MALFORMED = [
    None,
    "hello",
    ["hello"],
    [{"content": "no role"}],
    [{"role": "user", "content": 3}],
    [{"role": "user", "content": ["x"]}],
    [{"role": "user", "content": [{"type": "text", "text": 3}]}],
    [{"role": "user", "content": [{"type": "file", "file": {"file_id": "gs://bucket/x"}}]}],
    [{"role": "assistant", "tool_calls": "run"}],
    image({"url": "http://169.254.169.254/latest"}),
    image("file:///etc/passwd"),
    image({}),
]


@pytest.mark.parametrize(
    "fields", [{"tools": {"name": "run"}}, *[{"messages": messages} for messages in MALFORMED]]
)
def test_malformed_fields_and_addresses_to_fetch_are_refused(
    openai_server: OpenAIServer, fields: dict[str, Any]
) -> None:
    error = failure_of(**fields)
    assert error.failure is Failure.INVALID
    assert error.message.startswith(tuple(fields))
    assert not openai_server.requests


# Failures


@pytest.mark.parametrize(
    ("kind", "failure", "status"),
    [
        *MEANINGS,
        ("damaged", Failure.TRANSIENT, None),
        ("empty", Failure.TRANSIENT, None),
        ("html", Failure.UNCLEAR, None),
        ("reset", Failure.TRANSIENT, None),
        ("truncated", Failure.UNCLEAR, None),
        ("wrong_types", Failure.TRANSIENT, None),
    ],
)
def test_each_fault_is_a_failure_of_its_kind_whatever_the_prompt_contains(
    openai_server: OpenAIServer, kind: str, failure: Failure, status: int | None
) -> None:
    openai_server.reply(Fault(kind))
    told = [error["message"] for _, error in ERRORS.values()]
    messages = [{"role": "user", "content": " ".join([*told, "model_not_found insufficient_quota"])}]
    error = failure_of(messages=messages)
    assert error.failure is failure
    assert error.message.startswith(f"{MODEL} answered {status}: " if status else f"{MODEL}: ")
    assert error.is_final == (failure not in RETRIED)
    assert len(openai_server.requests) == 1


def test_an_answer_without_end_is_read_up_to_a_limit(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed_answer, "LARGEST_ANSWER", 8 * 2**20)
    # The first answer imports what all need.
    openai_server.reply("one", Fault("endless"))
    ask()
    tracemalloc.start()
    try:
        error = failure_of()
        assert tracemalloc.get_traced_memory()[1] < 24 * 2**20
    finally:
        tracemalloc.stop()
    assert error.failure is Failure.TRANSIENT
    assert error.message.endswith("the answer is larger than 8 MiB")


def test_a_sentence_decides_nothing(openai_server: OpenAIServer) -> None:
    openai_server.always("Yes.")
    for said in ("model_not_found", "Insufficient Quota", "your account is not active"):
        for status in (400, 422):
            openai_server.reply({"error": {"status": status, "message": f"messages.0: bad input {said}"}})
            error = failure_of(messages=[{"role": "user", "content": said}])
            assert error.failure is Failure.REFUSED


def test_a_denial_is_checked_with_a_request_that_contains_nothing_of_the_prompt(
    openai_server: OpenAIServer,
) -> None:
    broke = {"error": {"status": 400, "message": "Your credit balance is too low to access the API"}}
    openai_server.reply(broke, broke)
    error = failure_of(messages=[{"role": "user", "content": "What is a credit balance?"}])
    assert error.failure is Failure.FATAL
    assert error.message.endswith("credit balance is too low to access the API")
    assert "balance" not in json.dumps(openai_server.requests[1].body)


@pytest.mark.parametrize("status", [400, 403, 404])
def test_a_denial_of_one_request_does_not_stop_the_run(openai_server: OpenAIServer, status: int) -> None:
    denied = {"error": {"status": status, "message": "No endpoint takes this request", "code": status}}
    openai_server.reply(denied, {"text": "Yes.", "usage": {"prompt_tokens": 9, "completion_tokens": 1}})
    error = failure_of()
    assert error.failure is Failure.REFUSED
    assert (error.usage.prompt_tokens, error.usage.completion_tokens) == (9, 1)
    assert error.usage.cost_usd == pytest.approx(9 * 2.5e-6 + 1e-5)
    openai_server.reply(denied, denied)
    assert failure_of().failure is Failure.FATAL
    for other in ("503", "reset"):
        openai_server.reply(denied, Fault(other))
        assert failure_of().failure is Failure.REFUSED
    # The page of a firewall.
    openai_server.reply(Fault("blocked"), "Yes.")
    assert failure_of().failure is Failure.REFUSED


@pytest.mark.parametrize("fields", [{"text": 42}, {"text": ["a"]}, {"text": {"a": 1}}, {"tool_calls": "run"}])
def test_broken_parts_of_an_answer_break_it(openai_server: OpenAIServer, fields: dict[str, Any]) -> None:
    openai_server.reply({"text": "x", **fields})
    assert failure_of().failure is Failure.UNCLEAR


@pytest.mark.parametrize("kind", ["hang", "trickle"])
def test_a_provider_that_never_finishes_is_abandoned(openai_server: OpenAIServer, kind: str) -> None:
    openai_server.reply(Fault(kind))
    error = failure_of(parameters={"timeout": 0.3})
    assert error.failure is Failure.TRANSIENT
    assert "0.3" in error.message


@pytest.mark.parametrize(
    ("asked", "seconds"), [("7", 7.0), ("0.5", 0.5), ("-3", 0.0), ("soon", None), ("nan", None)]
)
def test_the_pause_that_a_provider_asks_for_is_read(
    openai_server: OpenAIServer, asked: str, seconds: float | None
) -> None:
    openai_server.reply(Fault("429", retry_after=asked), Fault("503", retry_after=asked))
    assert failure_of().retry_after == seconds
    assert failure_of().retry_after == seconds


def test_a_missing_key_is_final_for_a_server_elsewhere(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    error = failure_of(parameters={"api_base": "http://model.invalid/v1"})
    assert error.failure is Failure.FATAL
    assert error.message.endswith("set OPENAI_API_KEY (to any text, if http://model.invalid/v1 needs none)")
    # One on this machine is asked without it.
    openai_server.reply("hi")
    ask()
    assert len(openai_server.requests) == 1


@pytest.mark.parametrize("model", ["nonsense", "no-such-provider/gpt-4o"])
def test_an_unknown_provider_is_final_and_the_message_shows_the_form_of_a_name(model: str) -> None:
    error = failure_of(model)
    assert error.failure is Failure.FATAL
    assert error.message.startswith(f"{model}: no such provider")


def test_a_message_is_one_line_in_the_providers_words(openai_server: OpenAIServer) -> None:
    openai_server.reply(Fault("429"), Fault("404"), Fault("truncated"), Fault("reset"))
    assert failure_of().message == "openai/gpt-4o answered 429: Rate limit reached for requests."
    asked = f"{openai_server.base_url}/chat/completions"
    assert failure_of().message == f"openai/gpt-4o answered 404: The model `m` does not exist. (at {asked})"
    assert failure_of().message.startswith("openai/gpt-4o: the answer cannot be read: Unterminated string")
    assert failure_of().message.startswith(f"openai/gpt-4o: the connection to {asked} failed: ")
    error = failure_of(parameters={"api_base": "http://127.0.0.1:1"})
    said = "the connection to http://127.0.0.1:1/chat/completions failed: Connect call failed"
    assert error.message.startswith(f"openai/gpt-4o: {said}")


def test_another_protocols_error_is_read_too(openai_server: OpenAIServer) -> None:
    openai_server.reply(Fault("429", retry_after=4), Fault("401"))
    parameters = {"api_base": openai_server.base_url, "api_key": "sk-of-the-user"}
    error = failure_of("anthropic/claude-3-haiku-20240307", parameters=parameters)
    assert (error.failure, error.retry_after) == (Failure.RATE_LIMITED, 4.0)
    assert error.message == "anthropic/claude-3-haiku-20240307 answered 429: Rate limit reached for requests."
    assert failure_of("anthropic/claude-3-haiku-20240307", parameters=parameters).failure is Failure.FATAL


def test_the_page_of_a_wrong_base_url_is_not_shown(openai_server: OpenAIServer) -> None:
    page = "<!DOCTYPE html><html><head><title>Not Found</title></head><body>nginx</body></html>"
    anywhere = openai_server.http.expect_request(re.compile("/wrong/.*"))
    anywhere.respond_with_data(page, status=404, content_type="text/html")
    url = openai_server.http.url_for("/wrong")
    error = failure_of(parameters={"api_base": url})
    assert error.failure is Failure.FATAL
    said = f"no model API is at {url}/chat/completions: check the base URL"
    assert error.message == f"{MODEL} answered 404: {said}"


def test_no_message_contains_a_key(openai_server: OpenAIServer) -> None:
    given = "sk-given-as-a-parameter"
    openai_server.reply(Fault("401"), {"error": {"status": 401, "message": "x" * 390 + given}})
    assert failure_of().message == "openai/gpt-4o answered 401: Incorrect API key provided: [key]."
    assert "sk-" not in failure_of(parameters={"api_key": given}).message
    openai_server.reply({"error": {"status": 401, "message": f"who is {given}?"}})
    headers = {"Authorization": f"Bearer {given}"}
    assert failure_of(parameters={"extra_headers": headers}).message.endswith("who is [key]?")
    told = {"error": {"message": f"{given}\nand {KEY} are wrong", "code": "invalid_api_key"}}
    openai_server.reply({"text": "x", "fails_at": "role", "with": told})
    error = failure_of(parameters={"api_key": given})
    assert (error.failure, error.message) == (Failure.FATAL, f"{MODEL}: [key] and [key] are wrong")


# litellm itself


def test_seeds_are_for_providers_that_take_them() -> None:
    assert NamedModel("openai/gpt-4o").takes_seed
    assert NamedModel("hosted_vllm/anything").takes_seed
    assert not NamedModel("anthropic/claude-3-haiku-20240307").takes_seed
    assert not NamedModel("no-such-provider/x").takes_seed


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        (429, Failure.RATE_LIMITED),
        (402, Failure.FATAL),
        (502, Failure.TRANSIENT),
        ("insufficient_quota", Failure.FATAL),
        ("some_code", Failure.UNCLEAR),
        (None, Failure.UNCLEAR),
    ],
)
def test_the_code_of_an_error_with_http_status_200_decides(
    openai_server: OpenAIServer, code: object, failure: Failure
) -> None:
    openai_server.reply({"error": {"status": 200, "message": "it failed", "code": code}})
    error = failure_of()
    assert error.failure is failure
    assert error.message.endswith("it failed")
