"""Records what programs ask their model door, as tests.integration.test_recorded_requests replays it.

    pytest-super image build --agent codex
    python -m tests.recorded.record codex

Runs the program in a container, led by a scripted provider through the sessions below. tests.recorded.proxy
sits between it and the door. Writes `NAME-VERSION.jsonl` next to this file: one request a line, in order.
Long texts, which are their vendors', become stand-ins with the texts' lengths. All else stays: fields and
their order, names, types, schemas, ids, and the marks of caches.
"""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from pytest_super.agents import registry
from pytest_super.programs.installed.agent import HOME, InstalledAgent, InstalledProgram
from pytest_super.trial.trial import Trial
from tests.openai_server import running_server

Answer = str | dict[str, Any]

HERE = Path(__file__).parent
REQUESTS = f"{HOME}/requests.jsonl"
MOST_BYTES = 2**26
QUERY = "How much is six times seven?"
ANSWER = "/workspace/.super-answer.json"
# What a part of a conversation that is not the task's gets as an answer: a sub-agent, a search, a summary.
ASIDE = "That is all."
# The names of the fields whose long texts become stand-ins. A description is always a vendor's own.
TEXTS = ("text", "content", "output", "instructions", "definition")
LONGEST = 120
# Headers of a connection, and keys.
NOT_KEPT = ("host", "connection", "content-length", "accept-encoding", "authorization", "x-api-key")


def call(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": id, "type": "function", "function": function}


def item(type: str, id: str, **fields: Any) -> dict[str, Any]:
    """An item of a response that chat completions do not have."""
    return {"type": type, "id": f"item_{id}", "call_id": id, "status": "completed", **fields}


PATCH = "*** Begin Patch\n*** Add File: notes.txt\n+alpha\n+beta\n*** End Patch\n"
SCRIPT = f"const ran = await tools.exec_command({{cmd: 'echo 42 | tee {ANSWER}'}}); text(ran.output);"
# The answers to each session of a program, by the name of its model: programs offer each what it can use.
SESSIONS: dict[str, dict[str, list[Answer]]] = {
    "codex": {
        "openai/gpt-5.5": [
            {
                "text": "I look around.",
                "reasoning_content": "First I look.",
                "tool_calls": [
                    call("c1", "exec_command", cmd="ls"),
                    call("c2", "exec_command", cmd="exit 3"),
                ],
            },
            {"items": [item("custom_tool_call", "c3", name="apply_patch", input=PATCH)]},
            {
                "items": [
                    item("tool_search_call", "c4", execution="client", arguments={"query": "spawn an agent"})
                ]
            },
            {"text": "Done.", "tool_calls": [call("c5", "exec_command", cmd=f"echo 42 > {ANSWER}")]},
            "The answer is 42.",
        ],
        "openai/gpt-6.1-sol": [
            {"items": [item("custom_tool_call", "c1", namespace="functions", name="exec", input=SCRIPT)]},
            "The answer is 42.",
        ],
        "openai/of-nobody": [
            {
                "items": [
                    item(
                        "function_call",
                        "c1",
                        namespace="multi_agent_v1",
                        name="spawn_agent",
                        arguments='{"message": "Say hello."}',
                    )
                ]
            },
            {"tool_calls": [call("c2", "exec_command", cmd=f"echo 42 > {ANSWER}")]},
            "The answer is 42.",
        ],
    },
    "claude-code": {
        "anthropic/claude-sonnet-4-5": [
            {
                "text": "I look around.",
                "reasoning_content": "First I look.",
                "tool_calls": [
                    call("t1", "Bash", command="yes 'a line of a long file' | head -2000 > long.txt; ls"),
                    call("t2", "Bash", command="echo alpha | tee notes.txt"),
                ],
            },
            {
                "text": "I read.",
                "tool_calls": [
                    call("t3", "Read", file_path="/workspace/notes.txt"),
                    call("t4", "Read", file_path="/workspace/long.txt"),
                    call("t5", "Bash", command="exit 3"),
                ],
            },
            {"tool_calls": [call("t6", "ToolSearch", query="select:WebSearch", max_results=1)]},
            {"tool_calls": [call("t7", "WebSearch", query="six times seven")]},
            {"tool_calls": [call("t8", "Agent", description="say", prompt="Say hello.")]},
            {"text": "Done.", "tool_calls": [call("t9", "Bash", command=f"echo 42 > {ANSWER}")]},
            "The answer is 42.",
        ],
        "openai/gpt-4o": [
            {"tool_calls": [call("t1", "Bash", command=f"echo 42 > {ANSWER}")]},
            "The answer is 42.",
        ],
    },
}


@dataclass
class Leader:
    """Gives the answers of one session, each to the next question of the task's own conversation."""

    answers: list[Answer]
    given: int = 0

    def __call__(self, request: dict[str, Any]) -> Answer:
        conversation = json.dumps(request.get("messages") or request["input"])
        if QUERY not in conversation or self.given == len(self.answers):
            return {"text": ASIDE, "id": f"aside{len(conversation)}"}
        self.given += 1
        answer = self.answers[self.given - 1]
        # Programs take answers with one id for one answer.
        return {"id": self.given, **({"text": answer} if isinstance(answer, str) else answer)}


# In the run of a session, of which this module is a plugin


class RecordedProgram(InstalledProgram):
    """Runs a program behind the proxy, and fetches what this has written down."""

    def run(self, trial: Trial) -> None:
        self._agent = behind_proxy(self._agent)
        try:
            super().run(trial)
        finally:
            recorded = trial.kernel.files.read(REQUESTS, MOST_BYTES)
            Path(os.environ["RECORDED"]).write_bytes(recorded)


def behind_proxy(agent: InstalledAgent) -> InstalledAgent:
    line = f"python3 {HOME}/proxy.py {REQUESTS} sh -c {shlex.quote(agent.command)}"
    files = {**agent.files, "proxy.py": (HERE / "proxy.py").read_text()}
    return replace(agent, command=line, files=files)


def pytest_configure() -> None:
    pytest.MonkeyPatch().setattr(registry, "InstalledProgram", RecordedProgram)


# What starts the runs


def record(name: str) -> Path:
    """Run the sessions of an agent, and write its file."""
    agent = registry.installed_agent(name)
    assert agent is not None
    lines = []
    for model, answers in SESSIONS[name].items():
        for request in requests_of(name, model, answers):
            lines.append(json.dumps({"session": model, **trimmed_request(request)}, separators=(",", ":")))
    path = HERE / f"{name}-{agent.version}.jsonl"
    path.write_text("\n".join([*lines, ""]))
    return path


def requests_of(name: str, model: str, answers: list[Answer]) -> list[dict[str, Any]]:
    with running_server() as server, TemporaryDirectory() as folder:
        server.by(Leader(answers))
        task = {"id": "t", "set": "expert", "query": QUERY, "answer": 42}
        (Path(folder) / "t.task.yaml").write_text(json.dumps(task))
        (Path(folder) / "pytest.ini").write_text("[pytest]\n")
        recorded = Path(folder) / "requests.jsonl"
        environment = {"PYTHONPATH": str(HERE.parents[1]), "RECORDED": str(recorded)}
        options = (f"--super-agent={name}", f"--super-model={model}", "--super-sandbox=docker")
        command = [sys.executable, "-m", "pytest", "-p", "tests.recorded.record", *options, "."]
        subprocess.run(
            command, cwd=folder, env={**os.environ, **server.environment, **environment}, check=True
        )
        return [json.loads(line) for line in recorded.read_text().splitlines()]


def trimmed_request(request: dict[str, Any]) -> dict[str, Any]:
    headers = {name: value for name, value in request["headers"] if name.lower() not in NOT_KEPT}
    return {**request, "headers": headers, "body": trimmed(json.loads(request["body"] or "null"))}


def trimmed(value: Any, field: str = "") -> Any:
    if isinstance(value, list):
        return [trimmed(each) for each in value]
    # The input of a tool's call is the script's own.
    if isinstance(value, dict) and field != "input":
        return {name: trimmed(each, name) for name, each in value.items()}
    return f"[{len(value)} characters]" if isinstance(value, str) and is_theirs(value, field) else value


def is_theirs(text: str, field: str) -> bool:
    is_long = field in TEXTS and len(text) > LONGEST and QUERY not in text
    return bool(text) and (field == "description" or is_long)


if __name__ == "__main__":
    for each in sys.argv[1:] or SESSIONS:
        print(record(each))
