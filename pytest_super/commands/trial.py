"""`pytest-super trial …`: act in a trial from a shell.

Programs of `--super-agent='host-command: …'` call it once for each action, so it imports little.
"""

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from pytest_super.errors import SuperError

HELP = "act in the trial for which this program was started"
OK, NOT_OK, NO_TRIAL = 0, 1, 2
# HTTP statuses that mean that there is no trial, rather than that the request is wrong.
GONE = (401, 410)


class NoTrialError(Exception):
    """No trial was found, or it is over; the text says which."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = "Exit status: 0 the action succeeded, 1 it failed, 2 there is no trial or it is over."
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    for name, (summary, path) in QUERIES.items():
        query = actions.add_parser(name, help=summary)
        query.set_defaults(send=fetch, path=path)
    for name, (summary, read_body) in ACTIONS.items():
        action = actions.add_parser(name, help=summary)
        action.add_argument("--thought", default="", help="recorded as the thought of the step")
        action.set_defaults(send=take_step, path=f"/{name.replace('-', '_')}", read_body=read_body)


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
    body = {"thought": arguments.thought, **arguments.read_body()}
    step = ask("POST", arguments.path, body)
    return step["observation"], OK if step["outcome"] == "ok" else NOT_OK


def read_code() -> dict[str, Any]:
    return {"code": sys.stdin.read()}


def read_path() -> dict[str, Any]:
    return {"path": sys.stdin.read().removesuffix("\n")}


def read_answer() -> dict[str, Any]:
    return {"answer": read_json()}


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


def ask(method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """The trial's answer. Raises NoTrialError, and SuperError for a request that the trial refuses."""
    status, answer = send(method, path, b"" if body is None else json.dumps(body).encode())
    if status == 200:
        return answer
    message = answer["error"]["message"]
    raise NoTrialError(message) if status in GONE else SuperError(message)


def send(method: str, path: str, body: bytes) -> tuple[int, Any]:
    url, token = os.environ.get("SUPER_TRIAL_URL"), os.environ.get("SUPER_TRIAL_TOKEN")
    if not (url and token):
        raise NoTrialError("there is no trial here: SUPER_TRIAL_URL and SUPER_TRIAL_TOKEN are not set")
    place = urlsplit(url)
    try:
        # No time limit: a cell can take as long as its task allows.
        with closing(HTTPConnection(str(place.hostname), place.port)) as connection:
            connection.request(method, place.path + path, body, {"Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
    except (OSError, HTTPException, ValueError) as error:
        raise NoTrialError(f"the trial does not answer, so it is over: {error}") from None


QUERIES = {
    "task": ("print the task: its query, repository, limits", ""),
    "history": ("print the steps so far, including pre-executed ones", "/history"),
}
ACTIONS: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "execute": ("run standard input as a notebook cell", read_code),
    "continue-wait": ("keep waiting for the running cell", dict),
    "interrupt": ("stop the running cell", dict),
    "edit": ("replace a text in a file: a JSON object on standard input", read_edit),
    "read": ("print a file, whose path is standard input", read_path),
    "submit": ("submit the answer, JSON on standard input; ends the trial", read_answer),
}
