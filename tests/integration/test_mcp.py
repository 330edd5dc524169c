"""A trial's actions as tools of the Model Context Protocol, called by the SDK's client and by Claude Code."""

import json
import os
import shutil
import subprocess
from importlib.util import find_spec

import pytest

from pytest_super import cli
from pytest_super.programs import mcp_server
from pytest_super.programs.mcp_server import LONGEST, TOOLS
from pytest_super.trial.observation import STILL_RUNNING
from tests.integration.conftest import SCRIPT, asked_in
from tests.integration.test_host_command import HostProject
from tests.pages import example

# Not in an environment with the lowest versions, of which the SDK needs newer ones.
pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="there is no `mcp`")

# Calls the test's `main` with a client.
TOOL_CLIENT = """
import asyncio, json, os
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

PARAMETERS = StdioServerParameters(command="pytest-super", args=["trial", "mcp"], env=dict(os.environ))

async def call(client, name, **arguments):
    result = await client.call_tool(name, arguments)
    (content,) = result.content
    told.append([result.is_error, content.text])
    return content.text

async def with_client(main, mode):
    async with Client(stdio_client(PARAMETERS), mode=mode) as client:
        await main(client)
        # Before the server is closed: after a submission, a program is soon ended.
        with open(os.path.join(os.path.dirname(__file__), "told.json"), "w") as file:
            json.dump(told, file)

told = []
def run(main, mode="auto"):
    asyncio.run(with_client(main, mode))
"""


class ToolProject(HostProject):
    """The programs of its runs act by tools."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        super().__init__(pytester)
        self.add_program("tool_client", TOOL_CLIENT)

    def run_client(self, source: str, *arguments: str) -> list[tuple[bool, str]]:
        """What each call returned: whether it is an error, and its text."""
        self.add_program("program", f"from tool_client import *\n{source}")
        self.run("$PY $P/program.py", *arguments)
        told = self.path / "told.json"
        assert told.exists(), self.printed()
        return [(is_error, text) for is_error, text in json.loads(told.read_text())]


@pytest.fixture
def project(pytester: pytest.Pytester, own_temporary_files: None) -> ToolProject:  # noqa: ARG001
    return ToolProject(pytester)


# The newest version of the protocol, and that with sessions.
@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.slow)])
def test_a_client_drives_the_kernel_and_each_action_is_a_step_long_cells_too(
    project: ToolProject, mode: str
) -> None:
    project.add_task(landmarks=["half way"], limits={"cell": 100})
    source = """
async def main(client):
    assert {tool.name for tool in (await client.list_tools()).tools} == set(%r)
    await call(client, "task")
    await call(client, "edit", path="run.py", before="", after="print('half way')", thought="write")
    code = await call(client, "read", path="run.py")
    await call(client, "execute", code=code)
    await call(client, "execute", code="n = 42")
    await call(client, "execute", code="print('begun'); sleep(250)")
    await call(client, "read", path="a")
    await call(client, "continue_wait")
    await call(client, "continue_wait")
    await call(client, "continue_wait")
    await call(client, "execute", code="sleep(900)")
    await call(client, "interrupt")
    await call(client, "execute", code="die()")
    await call(client, "submit", answer=42)
    await call(client, "execute", code="1")
run(main, %r)
"""
    task, edit, read, run, empty, *long, submission, late = project.run_client(source % (list(TOOLS), mode))
    assert json.loads(task[1])["query"] == "What is it? 'Tell' \"me\""
    assert (edit[0], "half way" in edit[1]) == (False, True)
    assert (read, run) == ((False, "print('half way')"), (False, "half way"))
    assert empty == (False, "[There is no output.]")
    assert submission == (False, "[The trial is over: submitted.]")
    assert late == (True, "the trial is over: submitted")
    *steps, submit, _ = project.steps()
    taken = [(step["action"]["type"], step["thought"], step["landmarks"]) for step in (*steps[:4], submit)]
    assert taken == [
        ("edit", "write", []),
        ("read", "", []),
        ("execute", "", [0]),
        ("execute", "", []),
        ("submit", "", []),
    ]
    assert (project.results[-1]["solved"], project.results[-1]["metrics"]["landmarks"]) == (True, 1.0)
    begun, other, still, done, none, again, stopped, died = long
    note = "The cell has run for {} seconds and is still running"
    assert not begun[0]
    assert note.format(100) in begun[1]
    assert other == (True, STILL_RUNNING)
    assert (still[0], note.format(200) in still[1], done[0]) == (False, True, False)
    assert none == (True, "No cell is running.")
    assert not again[0]
    assert stopped == (False, "[The cell was interrupted.]")
    assert (died[0], "variables are lost" in died[1]) == (True, True)


@pytest.mark.slow
def test_what_cannot_be_done_is_an_error_with_its_reason(project: ToolProject) -> None:
    project.add_task(limits={"compute": 30})
    source = """
async def main(client):
    await call(client, "dance")
    await call(client, "edit", path="a")
    await call(client, "execute", code=1)
    await call(client, "execute", code="1/0")
    await call(client, "execute", code="print('x' * 100_000)")
    await call(client, "execute", code="sleep(60)")
    await call(client, "submit", answer=42)
run(main)
"""
    dance, edit, code, failed, long, spent, late = project.run_client(source)
    assert dance == (True, f"there is no tool `dance`; there are {', '.join(TOOLS)}")
    assert edit == (True, "the field `before` is missing")
    assert code == (True, "the field `code` must be a string")
    assert (failed[0], "ZeroDivisionError" in failed[1]) == (True, True)
    half = "x" * (LONGEST // 2)
    assert long == (False, f"{half}\n[… 60,000 characters …]\n{half}")
    assert spent == late == (True, "the trial is over: compute")
    assert project.results[-1]["stop_reason"] == "compute"


def test_without_the_sdk_a_message_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mcp_server, "find_spec", lambda _: None)
    assert cli.main(["trial", "mcp"]) == 1
    needed = "the Model Context Protocol needs its SDK: pip install 'pytest-super[mcp]'"
    assert capsys.readouterr().err == f"pytest-super: {needed}\n"


# Claude Code

CLAUDE_CODE = "2.1.197"


@pytest.fixture(scope="session")
def claude(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of Claude Code, a program that needs no installation."""
    npm = shutil.which("npm")
    assert npm, "install npm, which downloads Claude Code"
    folder = tmp_path_factory.mktemp("claude")
    package = f"@anthropic-ai/claude-code@{CLAUDE_CODE}"
    subprocess.run(
        [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", folder, package],
        check=True,
        timeout=300,
    )
    (program,) = folder.glob("node_modules/@anthropic-ai/claude-code-*/claude")
    return str(program)


def tool_call(name: str, **arguments: object) -> dict[str, object]:
    """An answer of the scripted model."""
    function = {"name": f"mcp__trial__{name}", "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"id": f"call_{name}", "type": "function", "function": function}]}


@pytest.mark.long
def test_claude_code_solves_a_task_with_no_other_tool(
    project: ToolProject, claude: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "HOME": str(project.path),
        # It refuses to work as root, unless it is told that it runs in a sandbox.
        "IS_SANDBOX": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }.items():
        monkeypatch.setenv(name, value)
    project.write("trial-mcp.json", example("agent-host-command.md", "trial-mcp.json"))
    project.write("ask-claude.sh", example("agent-host-command.md", "ask-claude.sh"))
    project.add_task()
    project.script(
        tool_call("execute", code="n = 6\nn * 7"), tool_call("submit", answer=42), "The answer is 42."
    )
    line = f"PATH={os.path.dirname(claude)}:$PATH sh {{invocation_dir}}/ask-claude.sh"
    result = project.run(f"{line} {{query_file}} {{model}} {{invocation_dir}}/trial-mcp.json", SCRIPT)
    assert (result["solved"], result["stop_reason"]) == (True, "submitted"), project.printed()
    assert result["prompt_tokens"] > 0
    assert [step["action"]["type"] for step in project.steps()] == ["execute", "submit", "host_command"]
    first, second, *_ = asked_in(project.latest / "trials/a/1.0")
    assert {each["name"] for each in first["tools"]} == {f"mcp__trial__{name}" for name in TOOLS}
    result_block = second["messages"][-1]["content"][0]
    assert (result_block["type"], result_block["content"][0]["text"]) == ("tool_result", "42")
