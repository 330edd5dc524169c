"""A client of a trial that serves its actions by the Model Context Protocol, with the official SDK."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pytest_super.errors import SuperError
from pytest_super.kernel.inside.endpoint import MAX_BODY
from pytest_super.programs.mcp_tools import INSTRUCTIONS, TOOLS, call
from pytest_super.programs.trial_client import TOKEN, NoTrialError, connect

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.types import CallToolResult
    from starlette.types import ASGIApp, Receive, Scope, Send

MISSING = "the Model Context Protocol needs its SDK: pip install 'pytest-super[mcp]'"
PATH = "/mcp"


def is_installed() -> bool:
    return find_spec("mcp") is not None


def serve_stdio() -> None:
    """Serve one client on the standard streams until it closes them. Raises SuperError without the SDK."""
    if not is_installed():
        raise SuperError(MISSING)
    import anyio
    from mcp.server.stdio import stdio_server

    async def serve() -> None:
        server = trial_server()
        async with stdio_server() as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())

    anyio.run(serve)


def serve_http(listener: socket.socket) -> None:
    """Serve any number of clients at PATH of this address, by streamable HTTP, until the process ends."""
    import uvicorn

    # Without sessions, because a client has nothing that the trial does not keep.
    app = trial_server().streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, max_request_body_size=MAX_BODY
    )
    config = uvicorn.Config(with_token(app, os.environ[TOKEN]), log_config=None)
    uvicorn.Server(config).run(sockets=[listener])


def trial_server() -> Server[Any]:
    from mcp import types
    from mcp.server.lowlevel import Server

    tools = [
        types.Tool(name=name, description=tool.full_description, input_schema=tool.schema)
        for name, tool in TOOLS.items()
    ]

    async def list_tools(*_: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await take(params.name, params.arguments or {})

    return Server("trial", instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool)


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


def with_token(app: ASGIApp, token: str) -> ASGIApp:
    """The application for clients that send the token as `Authorization: Bearer TOKEN`; others get a 401."""
    expected = f"Bearer {token}".encode()

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope.get("headers", [])).get(b"authorization", b"")
        if scope["type"] == "lifespan" or secrets.compare_digest(given, expected):
            await app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return checked


def main(listener: int) -> None:
    """The process that McpAddress starts. `listener` is the descriptor of a socket that listens."""

    def end_with_starter() -> None:
        os.read(0, 1)
        os._exit(0)

    threading.Thread(target=end_with_starter, daemon=True).start()
    serve_http(socket.socket(fileno=listener))


if __name__ == "__main__":
    main(int(sys.argv[1]))
