"""Why a container ended, from what its engine reports.

The engine removes a container and its state as soon as it has ended. Two sources remain: the answer to a wait
that was open before the container started (the exit code), and the engine's last 256 events (out of memory,
signals sent through the engine). Neither needs a thread or the engine's clock.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from pytest_super.errors import EngineError
from pytest_super.kernel.providers.docker.engine import engine_errors

if TYPE_CHECKING:
    import requests
    from docker import APIClient

ANSWER_SECONDS = 10.0
"""How long the engine can take to report the end of a container whose streams have ended."""
CAUSE_NANOSECONDS = 5_000_000_000
"""An event explains an end at most this much later; the sandbox has survived earlier ones."""


class Event(NamedTuple):
    action: str
    time: int
    """Nanoseconds, by the engine's clock."""


def open_wait(api: APIClient, container: str) -> requests.Response:
    """A request that the engine answers when the container ends. The engine has it when this returns."""
    # Not by docker-py's `wait`, which returns only at the end. The API's default condition, `not-running`,
    # already holds before the start.
    url = f"{api.base_url}/v{api.api_version}/containers/{container}/wait"
    response = api.post(
        url, params={"condition": "next-exit"}, stream=True, timeout=(ANSWER_SECONDS, ANSWER_SECONDS)
    )
    response.raise_for_status()
    return response


def exit_code(wait: requests.Response) -> int | None:
    """The exit code of the container; None if it still runs. EngineError if the engine does not answer."""
    import requests
    from urllib3.exceptions import ReadTimeoutError

    with engine_errors("say how the container ended"):
        try:
            return int(wait.json()["StatusCode"])
        except requests.ConnectionError as error:
            # `requests` passes on the error of urllib3 as an argument of its own.
            if any(isinstance(cause, ReadTimeoutError) for cause in error.args):
                return None
            raise


def past_events(api: APIClient, container: str) -> list[Event]:
    """The engine's events of a container that has ended, up to its end. EngineError if there is no answer."""
    import requests

    url = f"{api.base_url}/v{api.api_version}/events"
    params = {"since": "1", "filters": json.dumps({"container": [container], "type": ["container"]})}
    found: list[Event] = []
    with (
        engine_errors("list its events"),
        api.get(url, params=params, stream=True, timeout=(ANSWER_SECONDS, 2.0)) as response,
    ):
        response.raise_for_status()
        # The engine goes on with new events. A read that times out: 256 later events have displaced the end
        # of this container.
        with suppress(requests.ConnectionError):
            for line in response.iter_lines():
                data = json.loads(line)
                found.append(
                    Event(str(data.get("Action", data.get("status", ""))), int(data.get("timeNano", 0)))
                )
                if found[-1].action == "die":
                    break
    return found


def describe(code: int | None, events: list[Event], last_words: str = "") -> str:
    """Why the container ended, for a person: `out of memory`, `killed (exit code 137)`.

    `last_words` is the end of its standard error. Raises EngineError if somebody ended it through the engine
    (`docker kill`, `stop`, `rm -f`), which code inside cannot do.
    """
    if code is None:
        return "its main process closed the stream"
    recent = {event.action for event in events if events[-1].time - event.time < CAUSE_NANOSECONDS}
    # The engine reports every signal that it sends as `kill`, before the end that the signal causes.
    if "kill" in recent:
        raise EngineError(f"the container was killed from outside, through the engine (exit code {code})")
    if code == 137 and "oom" in recent:
        return "out of memory"
    if code > 128:
        return f"killed (exit code {code})"
    # Podman's first process ends with 1 and prints the reason.
    if code == 127 or "failed to exec pid1: No such file" in last_words:
        return "the image has no python3 in its PATH, which the kernel needs (exit code 127)"
    lines = last_words.strip().splitlines() if code else []
    return f"ended (exit code {code})" + (f": {lines[-1]}" if lines else "")
