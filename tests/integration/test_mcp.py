"""A trial's actions as tools of the Model Context Protocol, called by the SDK's client and by Claude Code."""

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from pytest_super import cli
from pytest_super.kernel.conformance.support import until
from pytest_super.programs import mcp_server
from pytest_super.programs.mcp_address import mcp_address
from pytest_super.programs.mcp_server import TOOLS
from pytest_super.trial.observation import STILL_RUNNING
from tests.integration.conftest import SCRIPT, asked_in
from tests.integration.test_host_command import HostProject
from tests.pages import example

# Not in an environment with the lowest versions, of which the SDK needs newer ones.
pytest.importorskip("mcp")

# Connects by the transport that its argument names, and calls the test's `main` with the client.
TOOL_CLIENT = """
import asyncio, json, os, sys
import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

def by_stdio():
    parameters = StdioServerParameters(command="pytest-super", args=["trial", "mcp"], env=dict(os.environ))
    return stdio_client(parameters)

def by_http(token=os.environ["SUPER_TRIAL_TOKEN"]):
    client = httpx2.AsyncClient(headers={"Authorization": "Bearer " + token}, timeout=60)
    return streamable_http_client(os.environ["SUPER_TRIAL_MCP"], http_client=client)

TRANSPORTS = {"stdio": by_stdio, "http": by_http}

async def call(client, name, **arguments):
    result = await client.call_tool(name, arguments)
    (content,) = result.content
    told.append([result.is_error, content.text])
    return content.text

async def with_client(main, mode):
    async with Client(TRANSPORTS[sys.argv[1]](), mode=mode) as client:
        await main(client)

told = []
def run(main, mode="auto"):
    asyncio.run(with_client(main, mode))
    with open(os.path.join(os.path.dirname(__file__), "told.json"), "w") as file:
        json.dump(told, file)
"""
BOTH = pytest.mark.parametrize("transport", ["stdio", "http"])


class ToolProject(HostProject):
    """The programs of its runs act by tools."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        super().__init__(pytester)
        self.add_program("tool_client", TOOL_CLIENT)

    def run_client(self, transport: str, source: str, *arguments: str) -> list[tuple[bool, str]]:
        """What each call returned: whether it is an error, and its text."""
        self.add_program("program", f"from tool_client import *\n{source}")
        self.run(f"$PY $P/program.py {transport}", *arguments)
        told = self.path / "told.json"
        assert told.exists(), self.printed()
        return [(is_error, text) for is_error, text in json.loads(told.read_text())]


@pytest.fixture
def project(pytester: pytest.Pytester, own_temporary_files: None) -> ToolProject:  # noqa: ARG001
    return ToolProject(pytester)


# The newest version of the protocol, and that with sessions.
@pytest.mark.parametrize(
    ("transport", "mode"),
    [
        ("stdio", "auto"),
        pytest.param("stdio", "legacy", marks=pytest.mark.slow),
        ("http", "auto"),
        pytest.param("http", "legacy", marks=pytest.mark.slow),
    ],
)
def test_a_client_drives_the_kernel_and_each_action_is_a_step(
    project: ToolProject, transport: str, mode: str
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
    await call(client, "submit", answer=42)
    await call(client, "execute", code="1")
run(main, %r)
"""
    task, edit, read, run, empty, submission, late = project.run_client(
        transport, source % (list(TOOLS), mode)
    )
    assert json.loads(task[1])["query"] == "What is it? 'Tell' \"me\""
    assert (edit[0], "half way" in edit[1]) == (False, True)
    assert (read, run) == ((False, "print('half way')"), (False, "half way"))
    assert empty == (False, "[There is no output.]")
    assert submission == (False, "[The trial is over: submitted.]")
    assert late == (True, "the trial is over: submitted")
    *steps, _ = project.steps()
    taken = [(step["action"]["type"], step["thought"], step["landmarks"]) for step in steps]
    assert taken == [
        ("edit", "write", []),
        ("read", "", []),
        ("execute", "", [0]),
        ("execute", "", []),
        ("submit", "", []),
    ]
    assert (project.results[-1]["solved"], project.results[-1]["metrics"]["landmarks"]) == (True, 1.0)


def test_a_long_cell_is_waited_for_or_stopped(project: ToolProject) -> None:
    project.add_task(limits={"cell": 100})
    source = """
async def main(client):
    await call(client, "execute", code="print('begun'); sleep(250)")
    await call(client, "read", path="a")
    await call(client, "continue_wait")
    await call(client, "continue_wait")
    await call(client, "continue_wait")
    await call(client, "execute", code="sleep(900)")
    await call(client, "interrupt")
    await call(client, "execute", code="die()")
run(main)
"""
    begun, other, still, done, none, again, stopped, died = project.run_client("stdio", source)
    note = "The cell has run for {} seconds and is still running"
    assert not begun[0]
    assert note.format(100) in begun[1]
    assert other == (True, STILL_RUNNING)
    assert (still[0], note.format(200) in still[1], done[0]) == (False, True, False)
    assert none == (True, "No cell is running.")
    assert not again[0]
    assert stopped == (False, "[The cell was interrupted.]")
    assert (died[0], "variables are lost" in died[1]) == (True, True)


def test_nobody_without_the_trials_token_gets_anything(project: ToolProject) -> None:
    project.add_task()
    source = """
from urllib.error import HTTPError
from urllib.request import Request, urlopen
body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
    "name": "submit", "arguments": {"answer": 42}}}).encode()
for header in ("", "Bearer ", "Bearer wrong", os.environ["SUPER_TRIAL_TOKEN"]):
    for path in ("", "/", "x"):
        headers = {"Authorization": header, "Accept": "application/json, text/event-stream"}
        try:
            urlopen(Request(os.environ["SUPER_TRIAL_MCP"] + path, body, headers))
        except HTTPError as error:
            told.append([error.code == 401, error.read().decode()])
async def main(client):
    pass
run(main)
"""
    assert project.run_client("http", source) == [(True, "")] * 12
    assert [step["action"]["type"] for step in project.steps()] == ["host_command"]


def test_without_the_sdk_a_message_names_the_extra(
    project: ToolProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mcp_server, "is_installed", lambda: False)
    assert cli.main(["trial", "mcp"]) == 1
    needed = "the Model Context Protocol needs its SDK: pip install 'pytest-super[mcp]'"
    assert capsys.readouterr().err == f"pytest-super: {needed}\n"
    conftest = project.path / "conftest.py"
    hidden = "from pytest_super.programs import mcp_server\nmcp_server.is_installed = bool\n"
    conftest.write_text(hidden + conftest.read_text())
    project.add_task()
    project.run_python("print(send(os.environ['SUPER_TRIAL_MCP'], b'{}')['error']['message'])")
    assert project.printed()[0] == needed


# Prints an address after a client has started its server.
ADDRESS = """
import os, time, urllib.error, urllib.request
from pytest_super.programs.mcp_address import mcp_address
with mcp_address({**os.environ, "SUPER_TRIAL_TOKEN": "x"}) as url:
    try:
        urllib.request.urlopen(url)
    except urllib.error.HTTPError as error:
        print(url, error.code, flush=True)
    time.sleep(600)
"""


def is_served(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    raise AssertionError("served without a token")


@pytest.mark.parametrize("has_client", [True, False])
def test_an_address_ends_with_its_trial(has_client: bool) -> None:
    with mcp_address({**os.environ, "SUPER_TRIAL_TOKEN": "x"}) as url:
        assert not has_client or is_served(url)
    assert not is_served(url)


def test_an_address_ends_with_a_process_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", ADDRESS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url, status = process.stdout.readline().split()
        assert (status, is_served(url)) == ("401", True)
        process.send_signal(signal.SIGKILL)
    assert until(lambda: not is_served(url), 10)


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
@BOTH
def test_claude_code_solves_a_task_with_no_other_tool(
    project: ToolProject, claude: str, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "HOME": str(project.path),
        # It refuses to work as root, unless it is told that it runs in a sandbox.
        "IS_SANDBOX": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }.items():
        monkeypatch.setenv(name, value)
    project.write("trial-mcp.json", example("agent-host-command.md", f"trial-mcp-{transport}.json"))
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
