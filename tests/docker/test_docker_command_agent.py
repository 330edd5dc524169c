"""Agents that others wrote, unmodified, as programs in containers without network."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gold_player import write_shipped_task
from tests.openai_server import OpenAIServer
from tests.pages import example

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("openai_environment")]

ROOT = Path(__file__).parents[2]
SHIPPED = "vader-demo"
# litellm's calls with tools need the package mcp, which it does not require.
MINI = ("mini-swe-agent==2.4.6", "litellm==1.106.2", "mcp==2.3.0")


def install(folder: Path, *packages: str) -> Path:
    """Into a folder for the Python of the kernel image."""
    target = ["--target", str(folder), "--python-version", "3.11", "--only-binary=:all:"]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *target, *packages], check=True)
    return folder


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("mini"), *MINI)


@pytest.fixture
def project(pytester: pytest.Pytester, image: str) -> pytest.Pytester:
    pytester.makeini(f"[pytest]\nsuper_image = {image}\nsuper_sandbox = docker\n")
    write_shipped_task(SHIPPED, pytester.path)
    return pytester


def solution() -> str:
    """The shipped solution as a program for IPython, which prints the answer."""
    notebook = json.loads((ROOT / "tasks" / f"{SHIPPED}.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return "\n".join([*cells[:-1], f"import json\nprint(json.dumps({cells[-1]}))"])


def solving() -> list[str]:
    """What an agent does before it answers."""
    return [
        "ls",
        f"cat > solve.ipy <<'END'\n{solution()}\nEND\nipython --colors=NoColor solve.ipy | tee solved",
    ]


def bash(command: str, number: int) -> dict[str, Any]:
    """An answer that calls mini-swe-agent's tool."""
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    return {
        "text": "THOUGHT: on.",
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


# Asks without a library.
ASK = """
import json, os, urllib.request
body = json.dumps({"messages": [{"role": "user", "content": "x"}]}).encode()
with urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body) as response:
    print(json.load(response)["choices"][0]["message"]["content"])
"""


def run_command(project: pytest.Pytester, command: str, **fields: Any) -> dict[str, Any]:
    """The result of a task whose answer is 42, by a model that says so."""
    for path in project.path.glob(f"{SHIPPED}.*"):
        path.unlink()
    task = {"id": "t", "set": "expert", "query": "q", "answer": 42, **fields}
    (project.path / "t.task.yaml").write_text(json.dumps(task))
    (project.path / "script.yaml").write_text(json.dumps(["42"] * 100))
    project.runpytest(f"--super-agent=command: {command}", "--super-model=scripted:script.yaml", ".")
    return result_of(project)


def result_of(project: pytest.Pytester) -> dict[str, Any]:
    latest = project.path / ".super/runs/latest"
    (line,) = (latest / "results.jsonl").read_text().splitlines()
    result: dict[str, Any] = json.loads(line)
    return result


def test_a_program_in_a_container_without_network_reaches_its_model(project: pytest.Pytester) -> None:
    result = run_command(
        project, f"python3 -c {shlex.quote(ASK)} > {{answer_file}}", sandbox={"network": False}
    )
    assert (result["solved"], result["isolated"], result["error"]) == (True, True, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "reasons"),
    [
        ("kill -9 -1; sleep 60", ["sandbox_lost", "returned"]),
        ("python3 -c 'x = [bytes(2**20) for _ in range(10**5)]'", ["returned", "sandbox_lost"]),
        ("f() { f | f & }; f; sleep 60", ["compute", "returned", "sandbox_lost"]),
        pytest.param(
            "while true; do (setsid sleep 100 &); done",
            ["compute", "returned", "sandbox_lost"],
            marks=pytest.mark.slow,
        ),
        pytest.param("yes", ["compute"], marks=pytest.mark.slow),
    ],
)
def test_no_program_makes_its_miss_an_error(
    project: pytest.Pytester, command: str, reasons: list[str]
) -> None:
    result = run_command(project, command, sandbox={"memory": "512m", "pids": 200}, limits={"compute": 3})
    assert result["error"] is None
    assert result["stop_reason"] in reasons
    assert not result["solved"]


@pytest.mark.long
@pytest.mark.network
def test_mini_swe_agent_solves_a_shipped_task_as_a_command(
    project: pytest.Pytester, openai_server: OpenAIServer, mini: Path
) -> None:
    commands = [
        *solving(),
        "tail -1 solved > .super-answer.json; cat .super-answer.json",
        "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
    ]
    openai_server.reply(*(bash(command, number) for number, command in enumerate(commands)))
    ini = (project.path / "tox.ini").read_text() + "\n"
    ini += example("agent-command.md", "mini.ini").removeprefix("[pytest]\n").replace("/data/mini", str(mini))
    (project.path / "tox.ini").write_text(ini)
    project.runpytest(".")
    result = result_of(project)
    assert (result["solved"], result["isolated"], result["stop_reason"]) == (True, True, "submitted")
    assert result["metrics"]["landmarks"] == 1.0
    assert len(openai_server.requests) == len(commands)
    assert "typical and tricky" in str(openai_server.requests[0].body["messages"])
    assert result["prompt_tokens"] > 1000
