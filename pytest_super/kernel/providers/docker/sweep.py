"""Finds the owner and the deadline of each container, and removes containers without a living owner.

The deadline counts only for owners on other hosts: clocks can jump, and a run must not end another's trials.
A container ends with its owner's process, because its standard input ends. A container can remain if it was
never started, or if code inside has stopped its main process.
"""

import re
import time
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from pytest_super.kernel.providers.docker.engine import CALL_SECONDS, connect, engine_errors
from pytest_super.kernel.providers.sandbox_folder import lives

LABEL = "pytest-super"
NAME = re.compile(r"/?pytest-super-[0-9a-f]+-(\d{10,})")
# Seconds until the deadline of a container. Its owner renews it while the trial lives.
LEASE = 3600.0


def container_name(token: str) -> str:
    """The name contains the deadline, because an engine can rename a container but not relabel it."""
    return f"pytest-super-{token}-{int(time.time() + LEASE)}"


def deadline_of(container: dict[str, Any]) -> float:
    """The deadline in the name; infinite if a person has renamed the container."""
    deadline = NAME.fullmatch((container["Names"] or [""])[0])
    return float(deadline[1]) if deadline else float("inf")


def is_abandoned(container: dict[str, Any], now: float) -> bool:
    is_alive = lives(container["Labels"].get(f"{LABEL}.owner", ""))
    return deadline_of(container) < now if is_alive is None else not is_alive


def sweep() -> None:
    """Remove containers of dead owners, and of other hosts past their deadline. Raises EngineError."""
    with engine_errors("list containers"):
        ours = connect().containers(all=True, filters={"label": f"{LABEL}=1"})
    for container in ours:
        if is_abandoned(container, time.time()):
            remove(container["Id"])


def remove(container: str) -> None:
    """Kill and remove the container; returns when it is gone. No error if it was gone before."""
    from docker.errors import APIError, NotFound

    api = connect()
    with engine_errors("remove a container"), suppress(NotFound):
        try:
            api.remove_container(container, force=True, v=True)
        except APIError as error:
            if error.status_code != HTTPStatus.CONFLICT:
                raise
            # The engine removes it already, because its main process has ended.
            api.wait(container, timeout=int(CALL_SECONDS), condition="removed")
