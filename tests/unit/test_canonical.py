"""When two requests are equal, with those that Codex and Claude Code sent as examples."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_super.json_values import texts
from pytest_super.model.protocols.canonical import DATA, IDS, NOT_ASKED, parts_of, place_of
from pytest_super.model.protocols.registry import ROUTES, route_of
from pytest_super.store.answers import AskedPart

RECORDED = Path(__file__).parents[1] / "recorded"
CHAT = "/v1/chat/completions"


def recorded() -> list[tuple[str, dict[str, Any]]]:
    lines = [line for file in sorted(RECORDED.glob("*.jsonl")) for line in file.read_text().splitlines()]
    asked = [(line["path"], line["body"]) for line in map(json.loads, lines)]
    return [(path, body) for path, body in asked if "count_tokens" not in path]


def parts(request: dict[str, Any], path: str = CHAT) -> dict[str, AskedPart]:
    route = route_of(path)
    assert route is not None
    accepted, _ = ROUTES[route].accepted(copy.deepcopy(request), is_open=True)
    found = parts_of(ROUTES[route], accepted)
    return {part.id: AskedPart("", part.name, part.value, part.item) for part in found}


SAID = ("text", "content", "output", "arguments", "encrypted_content", "query", "command", "name")


def chat(*messages: Any, **fields: Any) -> dict[str, Any]:
    said = [each if isinstance(each, dict) else {"role": "user", "content": each} for each in messages]
    return {"model": "m", "messages": said, **fields}


def renamed(value: Any) -> Any:
    """With other ids, and with what the programs say of themselves to the provider alone."""
    if isinstance(value, list):
        return list(map(renamed, value))
    if not isinstance(value, dict):
        return value
    found = {name: renamed_field(name, item) for name, item in value.items()}
    return {**found, "cache_control": {"type": "ephemeral"}} if "role" in found else found


def renamed_field(name: str, value: Any) -> Any:
    if name in IDS and isinstance(value, str):
        return f"new-{value}"
    return value if name in DATA and not isinstance(value, list) else renamed(value)


@pytest.mark.parametrize("number", range(len(recorded())))
def test_a_request_of_another_session_is_equal(number: int) -> None:
    path, body = recorded()[number]
    other = {**renamed(body), "stream": not body.get("stream"), "prompt_cache_key": "other", "user": "other"}
    assert parts(body, path).keys() == parts(other, path).keys()


@given(st.data())
def test_any_text_that_a_program_says_makes_another_request(data: st.DataObject) -> None:
    path, body = data.draw(st.sampled_from(recorded()))
    changed = copy.deepcopy(body)
    conversation = "input" if "input" in body else "messages"
    item = data.draw(st.sampled_from(changed[conversation]))
    holders = [holder for holder in holders_in(item) if any(is_said(name, holder[name]) for name in holder)]
    assume(holders)
    holder = data.draw(st.sampled_from(holders))
    name = data.draw(st.sampled_from([name for name in holder if is_said(name, holder[name])]))
    holder[name] += "!"
    before, now = parts(body, path), parts(changed, path)
    assert list(before)[-1] != list(now)[-1]
    assert place_of(next(now[id] for id in now if id not in before)).startswith("message ")


def holders_in(value: Any) -> list[dict[str, Any]]:
    inner = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    return [
        *([value] if isinstance(value, dict) else []),
        *(each for one in inner for each in holders_in(one)),
    ]


def is_said(name: str, value: Any) -> bool:
    return isinstance(value, str) and name in SAID


def calling(arguments: str, *others: Any, ids: tuple[str, ...] = ("x",)) -> dict[str, Any]:
    function = {"name": "f", "arguments": arguments}
    calls = [{"id": id, "type": "function", "function": function} for id in ids]
    return chat({"role": "assistant", "content": None, "tool_calls": calls}, *others)


@pytest.mark.parametrize("name", sorted(NOT_ASKED & {"stream", "store", "user", "seed", "prompt_cache_key"}))
def test_what_shapes_no_answer_is_left_out(name: str) -> None:
    assert parts(chat("a")).keys() == parts(chat("a", **{name: True})).keys()


def test_arguments_are_values_and_what_is_in_them_is_data() -> None:
    def asked(arguments: str) -> list[str]:
        return list(parts(calling(arguments)))

    assert asked('{"id": 1, "user": "me"}') == asked('{"user":"me","id":1}')
    assert asked('{"id": 1, "user": "me"}') != asked('{"id": 1, "user": "you"}')
    assert asked('{"id": "a"}') != asked('{"id": "b"}')
    assert asked("{broken") != asked("{broken!")


def test_an_id_that_leads_to_another_call_is_another_request() -> None:
    def asked(*ids: str) -> list[str]:
        results = [{"role": "tool", "tool_call_id": id, "content": str(n)} for n, id in enumerate(ids)]
        return list(parts(calling("{}", *results, ids=("x", "y"))))

    assert asked("x", "y") != asked("y", "x")


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("Chunk ID: 95cdc3\nWall time: 0.1014 seconds", "Chunk ID: 3eecd9\nWall time: 2.5 seconds"),
        ("Today's date is 2026-11-23.", "Today's date is 2026-12-01."),
        ("Today's date is Monday, November 23, 2026 (by", "Today's date is Friday, May 1, 2026 (by"),
        ("Ran 26 tests in 0.049s", "Ran 26 tests in 1.2s"),
        ("solve time: 1.05 s", "solve time: 11.05 s"),
        ("60.5 MB 12.1 MB/s eta", "60.5 MB 3.4 MB/s eta"),
        ("4/9 [00:01<00:03, 1.52it/s]", "4/9 [00:01<00:11, 101.7it/s]"),
        ("/tmp/pytest-super-agent-ab3_xy12/answer.json", "/tmp/pytest-super-agent-__zz9x0y/answer.json"),
        ("/tmp/ipykernel_25461/362.py:1: UserWarning", "/tmp/ipykernel_71/362.py:1: UserWarning"),
        ("/tmp/super-0123456789ab/work/a.py", "/tmp/super-ba9876543210/work/a.py"),
    ],
)
def test_what_differs_between_two_runs_of_one_agent_is_hidden(before: str, now: str) -> None:
    assert parts(chat(before)).keys() == parts(chat(now)).keys()


@pytest.mark.parametrize(
    ("before", "now"),
    [
        # Limits that an agent states, versions, figures and paths.
        ("timed out after 120 s", "timed out after 60 s"),
        ("torch 2.5.1", "torch 2.6.1"),
        ("accuracy 0.51", "accuracy 0.52"),
        ("loss 0.5 sum", "loss 0.6 sum"),
        ("/tmp/tmpab3/log", "/tmp/tmpxy1/log"),
        ("/tmp/pytest-super-agent-ab3_xy12/a", "/tmp/pytest-super-agent-ab3_xy12/b"),
        ("/tmp/ipykernel_25461/362.py:1:", "/tmp/ipykernel_25461/363.py:1:"),
        ("/tmp/super-0123456789ab/work/a.py", "/tmp/super-0123456789ab/work/b.py"),
        ("process 4711", "process 4712"),
        ("2026-11-23", "2026-11-24"),
        ("it took 0.51 s and 3", "it took 0.7 s and 4"),
    ],
)
def test_nothing_else_is_hidden(before: str, now: str) -> None:
    assert parts(chat(before)).keys() != parts(chat(now)).keys()


def test_what_is_hidden_depends_on_where_it_is() -> None:
    def asked(path: str, **fields: Any) -> str:
        return list(parts({**chat("a", max_tokens=5), **fields}, path))[-1]

    def billed(version: str) -> list[dict[str, str]]:
        text = f"x-anthropic-billing-header: cc_version={version}; cc_entrypoint=sdk-cli;"
        return [{"type": "text", "text": text}]

    def told(name: str) -> str:
        request = {"input": "a", "instructions": f"Write /tmp/pytest-super-agent-{name}/answer.json."}
        return list(parts(request, "/v1/responses"))[-1]

    messages = "/v1/messages"
    assert asked(messages, system=billed("2.1.328.cca")) == asked(messages, system=billed("2.1.329.f21"))
    assert asked(messages, system="version 1") != asked(messages, system="version 2")
    assert told("ab3_xy12") == told("__zz9x0y") != told("b")
    # Outside of the conversation, nothing else is.
    tools = [
        [{"type": "function", "function": {"name": "f", "description": f"wait 0.{n} s"}}] for n in (5, 7)
    ]
    assert asked(CHAT, tools=tools[0]) != asked(CHAT, tools=tools[1])


def test_nothing_of_a_request_that_clients_make_up_is_left() -> None:
    """A sieve for new fields: a session's ids must be in no part that is compared."""
    for path, body in recorded():
        session = body.get("prompt_cache_key") or json.dumps(body.get("metadata", {}).get("user_id", ""))
        ids = set(re.findall(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", session))
        assert ids
        shown = "".join(texts([part.value for part in parts(body, path).values()]))
        assert [id for id in ids if id in shown] == []
