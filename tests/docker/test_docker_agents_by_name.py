"""Agents by name: real programs from npm and pip, in containers without network, led by a scripted model."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import uuid
from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.agents.registry import installed_agent
from pytest_super.cli import main
from pytest_super.kernel.providers.docker.engine import inspect
from pytest_super.kernel.providers.docker.image import DEFAULT_IMAGE
from pytest_super.kernel.providers.docker.image.agent import name_with
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec
from tests.gold_player import gold_cells, shipped_task, write_shipped_task
from tests.openai_server import Answer, OpenAIServer
from tests.waiting import until

if TYPE_CHECKING:
    from docker import APIClient

pytestmark = [
    pytest.mark.docker,
    pytest.mark.long,
    pytest.mark.network,
    pytest.mark.usefixtures("openai_environment"),
]

OPENAI, ANTHROPIC = "--super-model=openai/gpt-4o", "--super-model=anthropic/claude-sonnet-4-5"
GOOGLE = "--super-model=gemini/gemini-2.5-flash"
TASKS = ("vader-demo", "vader-icwsm2014", "langid")
ANSWER = "/workspace/.super-answer.json"
# Runs the cells of a solution as the kernel would, and writes the value of the last.
SOLVE = """
import json
for cell in {cells!r}:
    ran = get_ipython().run_cell(cell)
json.dump(ran.result, open({answer!r}, "w"), default=float)
"""


def tool(name: str, **arguments: Any) -> Answer:
    function = {"name": name, "arguments": json.dumps(arguments)}
    text = "" if name == "write_stdin" else "On I go."
    # Claude Code joins answers of one id.
    id = uuid.uuid4().hex[:8]
    call = {"id": f"call_{id}", "type": "function", "function": function}
    return {"text": text, "tool_calls": [call], "id": id}


def smol_code(command: str) -> str:
    run = f"subprocess.run({command!r}, shell=True, capture_output=True, text=True).stdout"
    return f"Thought: On I go.\n<code>\nimport subprocess\nprint({run})\n</code>"


# How the model of each agent runs a command in the sandbox, and how it ends.
COMMANDS: dict[str, Callable[[str], Answer]] = {
    "codex": lambda command: tool("exec_command", cmd=command, yield_time_ms=30_000),
    "claude-code": lambda command: tool("Bash", command=command, description="on"),
    "gemini-cli": lambda command: tool("run_shell_command", command=command, description="on"),
    "mini-swe-agent": lambda command: tool("bash", command=command),
    "smolagents": smol_code,
    "aider": lambda command: f"On I go.\n\n```bash\n{command}\n```\n",
}
ENDS: dict[str, Answer] = {
    "mini-swe-agent": tool("bash", command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
    "smolagents": "Thought: done.\n<code>\nfinal_answer('done')\n</code>",
}
BY_NAME = pytest.mark.parametrize("name", COMMANDS)
# Programs from npm, which speak a protocol of their own.
NATIVE = ("codex", "claude-code", "gemini-cli")


@dataclass(frozen=True)
class Player:
    """Answers by the request alone: runs the task's commands one after the other, then ends."""

    name: str
    commands: dict[str, list[str]]
    """By a text in the task's query."""
    end: Answer = "I am done."

    def __call__(self, request: dict[str, Any]) -> Answer:
        # Responses and Gemini have other words for them.
        given = request.get("messages") or request.get("input") or request["contents"]
        messages = [json.dumps(message) for message in given]
        [commands] = [
            commands
            for query, commands in self.commands.items()
            if json.dumps(query)[1:-1] in "".join(messages)
        ]
        # Not the examples in aider's prompt.
        said = sum("On I go." in message for message in messages)
        if waits := re.search(r"Process running with session ID (\d+)", messages[-1]):
            return tool("write_stdin", session_id=int(waits[1]), chars="", yield_time_ms=30_000)
        if said < len(commands):
            return COMMANDS[self.name](commands[said])
        return ENDS.get(self.name, self.end)


def model_of(name: str) -> str:
    """One to which what the program speaks is passed through."""
    return {"claude-code": ANTHROPIC, "gemini-cli": GOOGLE}.get(name, OPENAI)


def solving(id: str) -> tuple[str, list[str]]:
    """A shipped task's query, and a command that runs its solution and writes the answer."""
    task = shipped_task(id)
    program = SOLVE.format(cells=gold_cells(task), answer=ANSWER)
    return task.query.strip()[:200], [
        # On one line, because aider runs each as a command.
        f"echo {b64encode(program.encode()).decode()} | base64 -d > solve.ipy && "
        "ipython --colors=NoColor solve.ipy"
    ]


def build_image(name: str) -> None:
    """The image with an agent on top of the kernel image, unless it is there."""
    agent = installed_agent(name)
    assert agent is not None
    if not inspect(name_with(DEFAULT_IMAGE, agent.program(is_exact=False))):
        assert main(["image", "build", "--agent", name]) == 0


def software_of_base() -> str:
    return DockerSandbox(SandboxSpec(), SandboxSettings()).software


@pytest.fixture
def project(pytester: pytest.Pytester, image: str) -> pytest.Pytester:  # noqa: ARG001
    pytester.makeini("[pytest]\nsuper_sandbox = docker\n")
    return pytester


def results_of(project: pytest.Pytester) -> dict[str, dict[str, Any]]:
    latest = project.path / ".super/runs/latest"
    lines = (latest / "results.jsonl").read_text().splitlines()
    return {result["id"]: result for result in map(json.loads, lines)}


def write_tasks(project: pytest.Pytester, ids: Iterable[str], **limits: Any) -> None:
    for id in ids:
        write_shipped_task(id, project.path)
        path = project.path / f"{id}.task.yaml"
        data = json.loads(path.read_text())
        data["sandbox"] = {**data.get("sandbox", {}), "network": False}
        data["limits"] = {**data.get("limits", {}), **limits}
        path.write_text(json.dumps(data))


def write_small_task(project: pytest.Pytester, id: str, **limits: Any) -> str:
    """A task whose answer is 42. Returns its query."""
    task = {"id": id, "set": "expert", "query": f"The task {id}.", "answer": 42, "limits": limits}
    (project.path / f"{id}.task.yaml").write_text(json.dumps(task))
    return str(task["query"])


@BY_NAME
def test_a_program_by_its_name_solves_shipped_tasks_fails_and_spends_its_budget(
    project: pytest.Pytester, openai_server: OpenAIServer, name: str
) -> None:
    build_image(name)
    ids = TASKS if name in NATIVE else TASKS[:1]
    write_tasks(project, ids)
    openai_server.by(
        Player(
            name,
            {
                **dict(map(solving, ids)),
                write_small_task(project, "misses"): [f"echo 41 > {ANSWER}"],
                write_small_task(project, "spends", compute=4): ["python3 -c 'import time; time.sleep(60)'"],
            },
        )
    )
    ran = project.runpytest_subprocess(f"--super-agent={name}", model_of(name), "-n2", ".")
    results = results_of(project)
    agent = installed_agent(name)
    assert agent is not None
    ends = {id: (result["solved"], result["stop_reason"]) for id, result in results.items()}
    solved = dict.fromkeys(ids, (True, "submitted"))
    assert ends == {**solved, "misses": (False, "submitted"), "spends": (False, "compute")}, ran.outlines
    assert {result["error"] for result in results.values()} == {None}
    assert {result["agent_version"] for result in results.values()} == {agent.version}
    assert results["vader-demo"]["metrics"]["landmarks"] == 1.0
    # What it found in the sandbox is what it finds in the base.
    assert {result["software"] for result in results.values()} == {software_of_base()}


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("codex", ".codex/AGENTS.md"),
        ("claude-code", ".claude/CLAUDE.md"),
        ("gemini-cli", ".gemini/GEMINI.md"),
    ],
)
def test_a_model_that_speaks_only_chat_completions_gets_the_users_instructions(
    project: pytest.Pytester, openai_server: OpenAIServer, name: str, file: str
) -> None:
    build_image(name)
    openai_server.speaks = frozenset()
    query = write_small_task(project, "t")
    openai_server.by(Player(name, {query: [f"echo 42 > {ANSWER}"]}))
    instructions = project.path / "setup" / file
    instructions.parent.mkdir(parents=True)
    instructions.write_text("Speak of ferrets.")
    project.runpytest_subprocess(f"--super-agent={name}", OPENAI, "--super-agent-files=setup", ".")
    result = results_of(project)["t"]
    assert (result["solved"], result["error"]) == (True, None)
    asked = [one.body for one in openai_server.requests if "messages" in one.body]
    assert all("Speak of ferrets." in json.dumps(body) for body in asked)
    assert len(asked) == 2


@BY_NAME
def test_a_provider_that_refuses_the_key_is_one_error_with_its_message(
    project: pytest.Pytester, openai_server: OpenAIServer, name: str
) -> None:
    build_image(name)
    write_small_task(project, "t")
    openai_server.always(openai_server.fault("401"))
    ran = project.runpytest_subprocess(f"--super-agent={name}", model_of(name), ".")
    assert "Incorrect API key provided" in results_of(project)["t"]["error"]
    assert ran.ret != 0


@pytest.mark.parametrize("name", NATIVE)
def test_a_run_that_is_killed_leaves_no_container_of_a_program(
    project: pytest.Pytester, openai_server: OpenAIServer, engine: APIClient, name: str
) -> None:
    build_image(name)
    write_small_task(project, "t")
    openai_server.always(openai_server.fault("hang"))
    command = [sys.executable, "-m", "pytest", f"--super-agent={name}", model_of(name), "."]
    process = subprocess.Popen(command, cwd=project.path, stdout=subprocess.DEVNULL)
    until(lambda: openai_server.requests)
    (run,) = (project.path / ".super/runs").glob("2*")
    filters = {"label": f"pytest-super.run={run.name}"}
    assert engine.containers(filters=filters)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    until(lambda: not engine.containers(all=True, filters=filters), 20)
