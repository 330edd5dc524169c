"""`pytest-super trial …`: act in a trial from a shell.

Programs of `--super-agent='host-command: …'` call it once for each action, so it imports little.
"""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any

from pytest_super.errors import SuperError
from pytest_super.programs.trial_client import NoTrialError, ask

HELP = ""
OK, NOT_OK, NO_TRIAL = 0, 1, 2


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = "Exit status: 0 the action succeeded, 1 it failed, 2 there is no trial or it is over."
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    for name, (summary, path) in QUERIES.items():
        actions.add_parser(name, help=summary).set_defaults(send=fetch, path=path)
    for name, (summary, read_body) in ACTIONS.items():
        action = actions.add_parser(name, help=summary)
        action.add_argument("--thought", default="", help="recorded as the thought of the step")
        action.set_defaults(send=take_step, path=f"/{name.replace('-', '_')}", read_body=read_body)
    mcp = actions.add_parser("mcp", help="offer these actions as tools by the Model Context Protocol (stdio)")
    mcp.set_defaults(send=serve)


def run(arguments: Namespace) -> int:
    """Print the trial's answer. Raises SuperError for a request that the trial refuses."""
    try:
        text, status = arguments.send(arguments)
    except NoTrialError as error:
        print(f"pytest-super: {error}", file=sys.stderr)
        return NO_TRIAL
    if text:
        # Observations can contain characters that the program's locale cannot encode.
        encoding = sys.stdout.encoding or "utf-8"
        print(text.removesuffix("\n").encode(encoding, "replace").decode(encoding))
    return int(status)


def fetch(arguments: Namespace) -> tuple[str, int]:
    return json.dumps(ask("GET", arguments.path), indent=2, ensure_ascii=False), OK


def take_step(arguments: Namespace) -> tuple[str, int]:
    """The observation and the exit status of one step."""
    step = ask("POST", arguments.path, {"thought": arguments.thought, **arguments.read_body()})
    return step["observation"], OK if step["outcome"] == "ok" else NOT_OK


def serve(_: Namespace) -> tuple[str, int]:
    """Serve until the client leaves."""
    from pytest_super.programs.mcp_server import serve as serve_client

    serve_client()
    return "", OK


def read_edit() -> dict[str, Any]:
    change = read_json()
    if not isinstance(change, dict):
        raise SuperError("an edit is a JSON object with `path`, `before` and `after`")
    return change


def read_json() -> Any:
    """Raises SuperError."""
    try:
        return json.load(sys.stdin)
    except (ValueError, RecursionError) as error:
        raise SuperError(f"standard input is not JSON: {error}") from None


QUERIES = {
    "task": ("print the task: its query, repository, limits", ""),
    "history": ("print the steps so far, including pre-executed ones", "/history"),
}
ACTIONS: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "execute": ("run standard input as a notebook cell", lambda: {"code": sys.stdin.read()}),
    "continue-wait": ("keep waiting for the running cell", dict),
    "interrupt": ("stop the running cell", dict),
    "edit": ("replace a text in a file: a JSON object on standard input", read_edit),
    "read": (
        "print a file, whose path is standard input",
        lambda: {"path": sys.stdin.read().removesuffix("\n")},
    ),
    "submit": ("submit the answer, JSON on standard input; ends the trial", lambda: {"answer": read_json()}),
}
