"""What Codex and Claude Code ask their model door, replayed in a local sandbox: see tests.recorded.record.

A program sends the recorded requests again, and a provider gives the answers that it gave then.
"""

import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_super.agents.registry import installed_agent
from pytest_super.trial.program_steps import UNSEEN
from tests import native_protocols
from tests.integration.conftest import ProgramProject, read_lines
from tests.openai_server import KEY, OpenAIServer, Received
from tests.recorded.record import ASIDE, SESSIONS, Leader, call

Recorded = list[dict[str, Any]]

FOLDER = Path(__file__).parents[1] / "recorded"
REPLAY = """
from client import *
import http.client, urllib.parse
folder, query_file = sys.argv[1:]
task, name = open(query_file).read().split()
place = urllib.parse.urlsplit(os.environ["ANTHROPIC_BASE_URL"])
with open(f"{folder}/{name}.jsonl") as requests, open(f"{folder}/{task}.answers", "w") as answers:
    for asked in map(json.loads, requests):
        door = http.client.HTTPConnection(place.hostname, place.port)
        headers = {**asked["headers"], "authorization": "Bearer none-is-needed"}
        door.request(asked["method"], place.path + asked["path"], json.dumps(asked["body"]), headers)
        answer = door.getresponse()
        told = {"path": asked["path"], "status": answer.status, "text": answer.read().decode()}
        answers.write(json.dumps(told) + "\\n")
"""
# They are not the models for which the programs were recorded.
OPENAI, ANTHROPIC = "gpt-4o", "claude-haiku-4-5"
# The only tools of the recorded requests that a provider would run.
HOSTED = ("web_search", "web_search_20250305")
LAST = "The answer is 42."
# The sessions as steps: the names of the tools that were called, and messages.
STEPS = {
    "codex": [
        *("exec_command", "exec_command", "apply_patch", "tool_search", "exec_command", LAST),
        *("functions__exec", LAST),
        *(ASIDE, "multi_agent_v1__spawn_agent", "exec_command", LAST),
    ],
    "claude-code": [
        *("Bash", "Bash", "Read", "Read", "Bash", "ToolSearch", ASIDE, "WebSearch", ASIDE, "Agent", "Bash"),
        *(LAST, "Bash", LAST),
    ],
}


def recording(name: str) -> Path:
    agent = installed_agent(name)
    assert agent is not None
    return FOLDER / f"{name}-{agent.version}.jsonl"


def requests_of(name: str) -> Recorded:
    """Those that want an answer of the model."""
    return [line for line in read_lines(recording(name)) if not is_count(line)]


def is_count(asked: dict[str, Any]) -> bool:
    return "/count_tokens" in asked["path"]


def answers_to(name: str) -> Iterator[Any]:
    leaders = {session: Leader(answers) for session, answers in SESSIONS[name].items()}
    return (leaders[line["session"]](line["body"]) for line in requests_of(name))


class ReplayProject(ProgramProject):
    """Tasks in which the recorded requests of a program are sent again."""

    def __init__(self, pytester: pytest.Pytester, server: OpenAIServer) -> None:
        super().__init__(pytester)
        self.add_program("replay", REPLAY)
        self.server = server

    def replay(self, model: str, *options: str, **tasks: str) -> None:
        """Run tasks, in the order of their ids, each with its program's requests."""
        for id, name in tasks.items():
            self.write(f"{name}.jsonl", recording(name).read_text())
            self.add_task(id, query=f"{id} {name}")
        agent = f"--super-agent=command: python {self.path}/replay.py {self.path} {{query_file}}"
        model = f"--super-model={model}"
        self.pytester.runpytest(agent, "--super-sandbox=local", model, *options, ".")

    def answers(self, id: str) -> list[dict[str, Any]]:
        """What the program got."""
        return read_lines(self.path / f"{id}.answers")

    def told(self, id: str) -> list[dict[str, Any]]:
        """The steps that its requests tell."""
        return [step for step in self.all_steps(id) if step["action"]["type"] in ("tool_call", "message")]

    def note(self, id: str) -> str:
        (step,) = [step for step in self.all_steps(id) if step["action"]["type"] == "command"]
        return str(step["observation"])


@pytest.fixture
def project(pytester: pytest.Pytester, openai_environment: OpenAIServer) -> ReplayProject:
    return ReplayProject(pytester, openai_environment)


def test_a_provider_of_messages_gets_all_that_claude_code_sends(project: ReplayProject) -> None:
    project.server.reply(*answers_to("claude-code"))
    project.replay(f"anthropic/{ANTHROPIC}", passed="claude-code")
    check_passed("claude-code", ANTHROPIC, project.server.requests)
    check_told(project, "passed", "claude-code")
    asked, steps = len(project.server.requests), project.told("passed")
    # The program gets its recorded answers again.
    again = ("--super-answers=latest", "--super-answers-miss=fail")
    project.replay(f"anthropic/{ANTHROPIC}", *again, passed="claude-code")
    (row,) = project.results
    assert (row["error"], row["recorded"]) == (None, len(requests_of("claude-code")))
    assert len(project.server.requests) == asked
    check_told(project, "passed", "claude-code")
    assert [step["observation"] for step in project.told("passed")] == [step["observation"] for step in steps]


@pytest.mark.slow
def test_providers_of_responses_and_completions_get_all_that_programs_send(project: ReplayProject) -> None:
    native = deque(answers_to("codex"))
    chat = deque(as_calls(answer) for name in ("claude-code", "codex") for answer in answers_to(name))

    def answer(asked: dict[str, Any]) -> Any:
        if "messages" in asked:
            return chat.popleft()
        # The gateway learns by one failed request that it has no Responses; a new gateway would take seconds.
        project.server.speaks = project.server.speaks if native else frozenset()
        return native.popleft() if native else ""

    project.server.by(answer)
    project.replay(f"openai/{OPENAI}", a_passed="codex", b_converted="claude-code", c_converted="codex")
    requests = project.server.requests
    check_passed("codex", OPENAI, requests[: len(requests_of("codex"))])
    converted = [received.body for received in requests if "messages" in received.body]
    check_converted([*requests_of("claude-code"), *requests_of("codex")], converted)
    tasks = {"a_passed": "codex", "b_converted": "claude-code", "c_converted": "codex"}
    check_all_told(project, tasks)
    # Each again from its record, as it went on and as it was converted.
    project.replay(f"openai/{OPENAI}", "--super-answers=latest", "--super-answers-miss=fail", **tasks)
    assert [row["error"] for row in project.results] == [None] * 3
    assert len(project.server.requests) == len(requests)
    check_all_told(project, tasks)


def check_all_told(project: ReplayProject, tasks: dict[str, str]) -> None:
    for id, name in tasks.items():
        check_told(project, id, name)
        if name == "codex":
            check_items(project, id)


def check_told(project: ReplayProject, id: str, name: str) -> None:
    """What the program got, and what the trajectory tells of it."""
    answers = project.answers(id)
    assert {answer["status"] for answer in answers} == {200}
    counts = [json.loads(answer["text"]) for answer in answers if is_count(answer)]
    assert len(counts) == (name == "claude-code")
    assert all(count["input_tokens"] > 0 for count in counts)
    steps = project.told(id)
    assert list(map(name_in, steps)) == STEPS[name]
    assert steps[0]["thought"] == "First I look.\nI look around."
    results = [step["observation"] for step in steps if step["action"]["type"] == "tool_call"]
    assert all(results)
    assert UNSEEN not in results
    # The command that fails.
    assert "code 3" in results[{"codex": 1, "claude-code": 4}[name]]
    hosted = {"codex": "web_search", "claude-code": "web_search_20250305"}[name]
    note = f"[Removed from the program's requests: {hosted}, which the provider would run.]"
    assert project.note(id).count(note) == 1


def name_in(step: dict[str, Any]) -> str:
    content = step["action"]["content"]
    return str(json.loads(content)["name"] if step["action"]["type"] == "tool_call" else content)


# Passed on


def check_passed(name: str, model: str, received: list[Received]) -> None:
    for line, asked in zip(requests_of(name), received, strict=True):
        expected = passed_on(line["body"], model)
        assert asked.body.keys() == expected.keys()
        for field in expected:
            assert asked.body[field] == expected[field], field
        assert asked.headers.get("anthropic-beta") == line["headers"].get("anthropic-beta")
        # The provider's key is in the place of the program's, which is none.
        assert KEY in str(asked.headers)
        assert "none-is-needed" not in str(asked.headers)


def passed_on(body: dict[str, Any], model: str) -> dict[str, Any]:
    """All of a recorded request but what is replaced or left out on purpose."""
    passed = {**body, "model": model}
    if "tools" in body:
        passed["tools"] = [tool for tool in body["tools"] if tool.get("type") not in HOSTED]
        if not passed["tools"]:
            # The question of Claude Code for a search: it offers nothing else, and demands it.
            del passed["tools"], passed["tool_choice"]
    return passed


# Converted


def as_calls(answer: Any) -> Any:
    """An answer with items of Responses as one of chat completions."""
    return {**answer, "tool_calls": [*answer.get("tool_calls", []), *map(as_call, answer.get("items", []))]}


def as_call(item: dict[str, Any]) -> dict[str, Any]:
    if item["type"] == "tool_search_call":
        return call(item["call_id"], "tool_search", **item["arguments"])
    name = "__".join(filter(None, (item.get("namespace"), item["name"])))
    is_free = item["type"] == "custom_tool_call"
    arguments = {"input": item["input"]} if is_free else json.loads(item["arguments"])
    return call(item["call_id"], name, **arguments)


def tools_in(body: dict[str, Any]) -> list[str]:
    """The names of the functions that a request offers, wherever it does."""
    holders = [body, *(item for item in body.get("input", []) if "tools" in item)]
    names = []
    for tool in (tool for holder in holders for tool in holder.get("tools", [])):
        inner = [f"{tool['name']}__{each['name']}" for each in tool.get("tools", [])]
        names += inner or [tool.get("name", tool.get("type"))]
    return [name for name in names if name not in HOSTED]


def calls_in(value: Any) -> list[tuple[str, str]]:
    """The calls in a conversation and the results, in order, by their ids."""
    if isinstance(value, list):
        return [found for each in value for found in calls_in(each)]
    if not isinstance(value, dict):
        return []
    kind = str(value.get("type"))
    if value.get("role") == "tool":
        return [("result", value["tool_call_id"])]
    if kind == "tool_result" or kind.endswith("_output"):
        return [("result", value.get("tool_use_id") or value["call_id"])]
    if kind in ("function", "tool_use") or kind.endswith("_call"):
        return [("call", value.get("call_id") or value["id"])]
    return calls_in([value.get("content"), value.get("tool_calls")])


def texts_in(value: Any) -> list[str]:
    """The texts of messages and of results in a conversation, in order."""
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, list):
        return [text for each in value for text in texts_in(each)]
    if not isinstance(value, dict):
        return []
    return [text for field in ("text", "content", "output") for text in texts_in(value.get(field))]


def check_converted(lines: Recorded, asked: list[dict[str, Any]]) -> None:
    for line, chat in zip(lines, asked, strict=True):
        body = line["body"]
        assert [tool["function"]["name"] for tool in chat.get("tools", [])] == tools_in(body)
        talk = [body.get("system"), body.get("messages") or body["input"]]
        assert calls_in(chat["messages"]) == calls_in(talk)
        said, place = "\n".join(texts_in(chat["messages"])), 0
        for text in texts_in(talk):
            place = said.find(text, place)
            assert place >= 0, text
            place += len(text)


def check_items(project: ReplayProject, id: str) -> None:
    """Codex gets the items that it knows, as it did in the recorded sessions."""
    events = [event for answer in project.answers(id) for event in events_of(answer["text"])]
    items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    got = [item for item in items if item["type"].endswith("_call")]
    wanted = [item for answer in answers_to("codex") for item in native_protocols.output_items(answer)]
    wanted = [item for item in wanted if item["type"].endswith("_call")]
    assert [{**item, "id": ""} for item in got] == [{**item, "id": ""} for item in wanted]


def events_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
