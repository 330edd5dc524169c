"""A client of a trial that serves its actions by the Model Context Protocol, with the official SDK."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pytest_super.errors import SuperError
from pytest_super.programs.trial_client import NoTrialError, ask, connect
from pytest_super.words import clipped

if TYPE_CHECKING:
    from http.client import HTTPConnection

    from mcp.types import CallToolResult


INSTRUCTIONS = (
    "These tools act in one trial of a research task, in a Jupyter kernel inside a sandbox. Only "
    "they reach the sandbox. `task` shows what to do, `submit` ends the trial. Every action is "
    "recorded and counts against the limits of the task. Actions are taken one at a time."
)
OVER = (
    "When the trial is over, the result says so and why: `submitted`, or the limit that is spent "
    "(`compute`, `wall`, `tokens`, `cost`, `steps`). Every later call is an error with the same "
    "reason."
)
# Characters of a result. Some programs do not show models longer results at all.
LONGEST = 40_000
CLIPPED = f"Of a longer text, the first and the last {LONGEST // 2:,} characters are shown."
# Outcomes of steps after which a model has to do something else.
FAILED = ("error", "kernel_died", "sandbox_lost")
TEXT = {"type": "string"}
THOUGHT = {**TEXT, "description": "Why you take this action. It is recorded with the step."}


@dataclass(frozen=True, slots=True)
class TrialTool:
    """A tool. `fields` are its required arguments."""

    description: str
    fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    is_action: bool = True

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        properties = {**self.fields, "thought": THOUGHT} if self.is_action else self.fields
        required = {"required": list(self.fields)} if self.fields else {}
        return {"type": "object", "properties": properties, **required, "additionalProperties": False}


TOOLS = {
    "task": TrialTool(
        "Show the task as JSON: `query` says what to do and in which form to answer, `folder` is "
        "that of the provided repository in the sandbox, `limits` has the limits in seconds, "
        "tokens, dollars and steps. This is not an action and costs nothing.",
        is_action=False,
    ),
    "execute": TrialTool(
        "Run one notebook cell. Returns what the cell prints, displays and raises, as a terminal "
        f"shows it. {CLIPPED} Variables stay for later cells. If the cell still runs at the cell limit "
        "(`limits.cell` seconds), the result is the output until then with a note, and the cell "
        "continues to run: then call `continue_wait` or `interrupt`. Until the cell has ended, "
        "every action but these and `submit` is refused.",
        {"code": {**TEXT, "description": "Python as in a Jupyter notebook; also `!command` and `%magic`."}},
    ),
    "continue_wait": TrialTool(
        "Wait for the cell that is still running, for at most the cell limit once more. Returns "
        "the same as `execute`, with the output since then. An error if no cell "
        "runs."
    ),
    "interrupt": TrialTool(
        "Stop the cell that is still running, as Ctrl-C does; variables and files stay. If it still "
        "runs, a second interrupt replaces the kernel: only files stay. Returns its output since the last "
        "result. An error if no cell runs."
    ),
    "edit": TrialTool(
        "Replace a text in a file of the sandbox. Returns the lines around the change. An error, "
        "with similar lines of the file, if `before` does not occur exactly once. An empty "
        "`before` fills a new or empty file.",
        {
            "path": {**TEXT, "description": "The file. A relative path is resolved as in a cell."},
            "before": {**TEXT, "description": "The text to replace; with a newline at its end, whole lines."},
            "after": {**TEXT, "description": "The new text."},
        },
    ),
    "read": TrialTool(
        "Show the text of a file of the sandbox. An error if there is no such file, or if it has "
        "more than 100,000 bytes: then print parts of it in a cell. "
        f"{CLIPPED}",
        {"path": {**TEXT, "description": "The file. A relative path is resolved as in a cell."}},
    ),
    "submit": TrialTool(
        "Submit the final answer and end the trial; possible only once, also while a cell runs. "
        "The result does not say whether the answer is right.",
        {"answer": {"description": "The answer, in the form that the query asks for: any JSON value."}},
    ),
}


def call(name: str, arguments: dict[str, Any], connection: HTTPConnection) -> tuple[str, bool]:
    """The text that a call returns, and whether it is an error."""
    tool = TOOLS.get(name)
    if tool is None:
        return f"there is no tool `{name}`; there are {', '.join(TOOLS)}", True
    try:
        if tool.is_action:
            return step_text(ask("POST", f"/{name}", arguments, connection))
        return json.dumps(ask("GET", "", None, connection), indent=2, ensure_ascii=False), False
    except (NoTrialError, SuperError) as error:
        return str(error), True


def step_text(step: dict[str, Any]) -> tuple[str, bool]:
    over = f"[The trial is over: {step['stop_reason']}.]" if step["stop_reason"] else ""
    # Some models' APIs refuse empty texts.
    shown = clipped(step["observation"].removesuffix("\n"), LONGEST)
    text = "\n".join(filter(None, [shown, over])) or "[There is no output.]"
    return text, step["outcome"] in FAILED


MISSING = "the Model Context Protocol needs its SDK: pip install 'pytest-super[mcp]'"


def serve() -> None:
    """Serve one client on the standard streams until it closes them. Raises SuperError without the SDK."""
    if find_spec("mcp") is None:
        raise SuperError(MISSING)
    import anyio
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    tools = [
        types.Tool(
            name=name,
            description=f"{tool.description} {OVER}" if tool.is_action else tool.description,
            input_schema=tool.schema,
        )
        for name, tool in TOOLS.items()
    ]

    async def list_tools(*_: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await take(params.name, params.arguments or {})

    async def serve_streams() -> None:
        server = Server("trial", instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())

    anyio.run(serve_streams)


async def take(name: str, arguments: dict[str, Any]) -> CallToolResult:
    """Call a tool. A cancelled call leaves the trial, which does not begin its action then."""
    from anyio import to_thread
    from mcp.types import CallToolResult, TextContent

    try:
        connection = connect()
    except NoTrialError as error:
        return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)
    try:
        text, is_error = await to_thread.run_sync(
            partial(call, name, arguments, connection), abandon_on_cancel=True
        )
    finally:
        # Closing would not end the wait of the thread that reads.
        if (waiting := connection.sock) is not None:
            with suppress(OSError):
                waiting.shutdown(socket.SHUT_RDWR)
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error)
