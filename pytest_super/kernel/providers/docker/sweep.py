"""Finds the owner and the deadline of each container, and removes containers without a living owner.

A container ends with its owner's process, because its standard input ends. A container can remain if it was
never started, or if code inside has stopped its main process.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from pytest_super.kernel.providers.docker.engine import connect, engine_errors
from pytest_super.kernel.providers.owner import is_dead

if TYPE_CHECKING:
    from docker import APIClient

LABEL = "pytest-super"
NAME = re.compile(r"^/?pytest-super-[0-9a-f]+-(\d+)$")


def container_name(token: str, deadline: float) -> str:
    """The name contains the renewed deadline, because an engine can rename a container but not relabel it."""
    return f"pytest-super-{token}-{int(deadline)}"


def deadline_of(container: dict[str, Any]) -> float:
    """The renewed deadline in the name, or else the first one, in the label."""
    for name in container.get("Names") or []:
        if match := NAME.match(name):
            return float(match[1])
    label = container["Labels"].get(f"{LABEL}.deadline", "")
    return float(label) if label.isdecimal() else float("inf")


def is_abandoned(container: dict[str, Any], now: float) -> bool:
    return is_dead(container["Labels"].get(f"{LABEL}.owner", "")) or deadline_of(container) < now


def sweep() -> list[str]:
    """Remove our containers whose owner on this host is dead or whose deadline has passed.

    Returns their names. The controller calls it at the start of a run. Raises EngineError when no engine
    answers.
    """
    api = connect()
    with engine_errors("list containers"):
        ours = api.containers(all=True, filters={"label": f"{LABEL}=1"})
    abandoned = [container for container in ours if is_abandoned(container, time.time())]
    for container in abandoned:
        remove(api, container["Id"])
    return [container["Names"][0].lstrip("/") for container in abandoned]


def remove(api: APIClient, container: str) -> None:
    """Kill and remove the container. No error if it is gone or is being removed."""
    from docker.errors import APIError

    with engine_errors("remove a container"):
        try:
            api.remove_container(container, force=True, v=True)
        except APIError as error:
            if error.status_code not in (404, 409):
                raise
