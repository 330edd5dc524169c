"""Why a container ended, from what its engine reports.

The engine removes a container and its state as soon as it has ended. Two sources remain, which are opened
before the container starts: the answer to a wait (the exit code), and the events (out of memory, signals sent
through the engine), of which the engine itself keeps only the last 256. Neither needs a thread.
"""

import json
import time
from contextlib import ExitStack, suppress
from functools import cached_property
from typing import NamedTuple

from pytest_super.errors import EngineError
from pytest_super.kernel.inside.supervision import KILLED
from pytest_super.kernel.providers.docker.engine import connect, engine_errors

ANSWER_SECONDS = 10.0
"""How long the engine can take to report the end of a container whose streams have ended."""
CAUSE_NANOSECONDS = 5_000_000_000
"""An event explains an end at most this much later; the sandbox has survived earlier ones."""

SIGKILLED = 137
"""The exit code of a container whose first process was killed. Code inside cannot do that by a signal."""
OUT_OF_MEMORY = "out of memory"


class Event(NamedTuple):
    action: str
    time: int
    """Nanoseconds, by the engine's clock."""


class EndReport:
    """What the engine will report about the end of a container, from its creation on."""

    def __init__(self, container: str) -> None:
        """The engine has both requests when this returns. Raises what `requests` raises."""
        self._container = container
        self._api = api = connect()
        url, timeout = f"{api.base_url}/v{api.api_version}", (ANSWER_SECONDS, ANSWER_SECONDS)
        # Not by docker-py's `wait`, which returns only at the end. The API's default condition,
        # `not-running`, already holds before the start.
        condition = {"condition": "next-exit"}
        self._wait = api.post(
            f"{url}/containers/{container}/wait", params=condition, stream=True, timeout=timeout
        )
        filters = json.dumps({"container": [container], "type": ["container"]})
        self._events_url = f"{url}/events"
        with ExitStack() as on_failure:
            on_failure.callback(self._wait.close)
            self._wait.raise_for_status()
            self._news = api.get(self._events_url, params={"filters": filters}, stream=True, timeout=timeout)
            on_failure.callback(self._news.close)
            self._news.raise_for_status()
            on_failure.pop_all()

    @cached_property
    def exit_code(self) -> int | None:
        """The container's exit code; None if it still runs. EngineError if the engine does not answer."""
        import requests
        from urllib3.exceptions import ReadTimeoutError

        with engine_errors("say how the container ended"):
            try:
                return int(self._wait.json()["StatusCode"])
            except requests.ConnectionError as error:
                # `requests` passes on the error of urllib3 as an argument of its own.
                if any(isinstance(cause, ReadTimeoutError) for cause in error.args):
                    return None
                raise

    @cached_property
    def events(self) -> list[Event]:
        """The container's events up to its end. EngineError if the engine does not answer."""
        import requests

        found: list[Event] = []
        # A read times out if the engine does not report the end.
        with engine_errors("report its events"), suppress(requests.ConnectionError):
            for line in self._news.iter_lines():
                data = json.loads(line)
                action = str(data.get("Action", data.get("status", "")))
                found.append(Event(action, int(data.get("timeNano", 0))))
                if action == "die":
                    break
        return found

    def cause(self, last_words: str) -> str:
        """See `describe`. EngineError also if the container is paused or the engine does not answer."""
        code = self.exit_code
        if code is None:
            self.refuse_pause()
        cause = describe(code, [] if code is None else self.events, last_words)
        if code == SIGKILLED and cause != OUT_OF_MEMORY and self._reports_memory_kills():
            raise EngineError(
                f"the container's first process was killed from outside, on its host (exit code {code})"
            )
        return cause

    def _reports_memory_kills(self) -> bool:
        """Whether no kill for lack of memory is missing among the events, which then show who killed.

        Podman reports none, and containerd can lose them on control groups of version 2 (its issue 8893).
        """
        with engine_errors("say which engine it is"):
            name = self._api.version()["Components"][0]["Name"]
            # Engines that are too old to state the version know only the first.
            return name == "Engine" and str(self._api.info().get("CgroupVersion", "1")) == "1"

    def refuse_pause(self) -> None:
        """Raises EngineError if the container is or was paused, which code inside cannot do, or on no answer.

        A pause that is over counts too, because it has taken time from the code inside.
        """
        from docker.errors import NotFound

        with engine_errors("look at the container"), suppress(NotFound):
            if self._api.inspect_container(self._container)["State"].get("Paused") or self._was_paused():
                raise EngineError("the container was paused from outside, through the engine")

    def _was_paused(self) -> bool:
        """Whether a pause is among the events that the engine still keeps."""
        filters = json.dumps({"container": [self._container], "event": ["pause"]})
        # With an end that is not in the future, the engine answers at once.
        asked = {"filters": filters, "since": "0", "until": f"{time.time():.9f}"}
        answer = self._api.get(self._events_url, params=asked, timeout=ANSWER_SECONDS)
        answer.raise_for_status()
        return bool(answer.content.strip())

    def close(self) -> None:
        self._wait.close()
        self._news.close()


def describe(code: int | None, events: list[Event], last_words: str = "") -> str:
    """Why the container ended, for a person. Raises EngineError if somebody ended it through the engine."""
    if code is None:
        return "its main process closed the stream"
    recent = {event.action for event in events if events[-1].time - event.time < CAUSE_NANOSECONDS}
    # The engine reports every signal that it sends as `kill`, before the end that the signal causes.
    if "kill" in recent:
        raise EngineError(f"the container was killed from outside, through the engine (exit code {code})")
    # The first process was killed, or the bridge, whose end is also that of the first process.
    if code in (SIGKILLED, KILLED) and "oom" in recent:
        return OUT_OF_MEMORY
    if code > 128:
        return f"killed (exit code {code})"
    lines = last_words.strip().splitlines() if code else []
    return f"ended (exit code {code})" + (f": {lines[-1]}" if lines else "")
