"""`pytest-super trial …`: how a shell acts in the trial beside which it runs.

For programs of `--super-agent='host-command: …'`, once an action: it imports little.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_super.errors import SuperError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction
    from collections.abc import Callable

OK, NOT_OK, NO_TRIAL = 0, 1, 2
# Of answers that speak of the trial, not of the request.
GONE = (401, 410)


class NoTrialError(Exception):
    """There is no trial here, or it is over; the text says which."""


def add_trial_parser(subparsers: _SubParsersAction[ArgumentParser]) -> None:
    """Add `trial …` to the command line; its namespace carries `run`, a function of the namespace."""
    trial = subparsers.add_parser(
        "trial",
        help="act in the trial beside which this runs",
        epilog="Exit status: 0 the action went well, 1 it did not, 2 there is no trial or it is over.",
    )
    commands = trial.add_subparsers(required=True, metavar="ACTION")
    for name, (summary, path) in QUESTIONS.items():
        asking = commands.add_parser(name, help=summary)
        asking.set_defaults(run=run_question, path=path)
    for name, (summary, read_body) in ACTIONS.items():
        acting = commands.add_parser(name, help=summary)
        acting.add_argument("--thought", default="", help="what is recorded as the thought of the step")
        acting.set_defaults(run=run_action, path=f"/{name.replace('-', '_')}", read_body=read_body)


def run_question(arguments: Namespace) -> int:
    return speak(lambda: (json.dumps(ask("GET", arguments.path), indent=2, ensure_ascii=False), OK))


def run_action(arguments: Namespace) -> int:
    return speak(lambda: take_step(arguments))


def take_step(arguments: Namespace) -> tuple[str, int]:
    """The observation and the exit status of one step."""
    body = {"thought": arguments.thought, **arguments.read_body()}
    step = ask("POST", arguments.path, body)
    return step["observation"], OK if step["outcome"] == "ok" else NOT_OK


def speak(find: Callable[[], tuple[str, int]]) -> int:
    """Print the text that is found; its exit status. Raises SuperError for what the trial refuses."""
    try:
        text, status = find()
    except NoTrialError as error:
        print(f"pytest-super: {error}", file=sys.stderr)
        return NO_TRIAL
    if text:
        encoding = sys.stdout.encoding or "utf-8"
        print(text.removesuffix("\n").encode(encoding, "replace").decode(encoding))
    return status


def read_code() -> dict[str, Any]:
    return {"code": sys.stdin.read()}


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
        raise SuperError(f"what came on standard input is no JSON: {error}") from None


def ask(method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """The trial's answer. Raises NoTrialError, and SuperError for what the trial refuses."""
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
        # No time limit: a cell may take as long as its task allows.
        with closing(HTTPConnection(str(place.hostname), place.port)) as connection:
            connection.request(method, place.path + path, body, {"Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
    except (OSError, HTTPException, ValueError) as error:
        raise NoTrialError(f"the trial does not answer, so it is over: {error}") from None


QUESTIONS = {
    "task": ("print the task: its query, repository, limits", ""),
    "history": ("print the steps until now, pre-executed ones included", "/history"),
}
ACTIONS: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "execute": ("run standard input as a notebook cell", read_code),
    "continue-wait": ("wait on for the cell that is running", dict),
    "interrupt": ("stop the cell that is running", dict),
    "edit": ("replace a text in a file: a JSON object on standard input", read_edit),
    "submit": ("hand in the answer, JSON on standard input; ends the trial", read_answer),
}
