"""Asks the trial for which this program was started. It imports little: a shell starts it for each action."""

import json
import os
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from pytest_super.errors import SuperError

URL, TOKEN = "SUPER_TRIAL_URL", "SUPER_TRIAL_TOKEN"
# HTTP statuses that mean that there is no trial, rather than that the request is wrong.
GONE = (401, 410)


class NoTrialError(Exception):
    """No trial was found, or it is over; the text says which."""


def connect() -> HTTPConnection:
    """A connection to the trial, which is opened by the request. Raises NoTrialError."""
    if not (os.environ.get(URL) and os.environ.get(TOKEN)):
        raise NoTrialError(f"there is no trial here: {URL} and {TOKEN} are not set")
    place = urlsplit(os.environ[URL])
    # No time limit: a cell can take as long as its task allows.
    return HTTPConnection(str(place.hostname), place.port)


def ask(
    method: str, path: str, body: dict[str, Any] | None = None, connection: HTTPConnection | None = None
) -> Any:
    """The trial's answer. Raises NoTrialError, and SuperError for a request that the trial refuses."""
    sent = b"" if body is None else json.dumps(body).encode()
    connection = connection or connect()
    place, header = urlsplit(os.environ[URL]).path + path, {"Authorization": f"Bearer {os.environ[TOKEN]}"}
    try:
        with closing(connection):
            connection.request(method, place, sent, header)
            response = connection.getresponse()
            status, answer = response.status, json.loads(response.read())
    except (OSError, HTTPException, ValueError) as error:
        raise NoTrialError(f"the trial does not answer, so it is over: {error}") from None
    if status == 200:
        return answer
    message = answer["error"]["message"]
    raise NoTrialError(message) if status in GONE else SuperError(message)
