"""Finds the owner and the deadline of each container, and removes containers without a living owner.

A container ends with its owner's process, since its standard input does. What can stay is one that was
created and never started, or one whose main process the code inside has stopped.
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
    """Labels of a living container cannot change; its name can, and carries the deadline that is renewed."""
    return f"pytest-super-{token}-{int(deadline)}"


def deadline_of(container: dict[str, Any]) -> float:
    """The renewed deadline in the name, else the first one in the label."""
    for name in container.get("Names") or []:
        if match := NAME.match(name):
            return float(match[1])
    label = container["Labels"].get(f"{LABEL}.deadline", "")
    return float(label) if label.isdecimal() else float("inf")


def is_abandoned(container: dict[str, Any], now: float) -> bool:
    return is_dead(container["Labels"].get(f"{LABEL}.owner", "")) or deadline_of(container) < now


def sweep(now: float | None = None) -> list[str]:
    """Remove our containers whose owner on this host is dead or whose deadline is past; give their names.

    The controller calls it at the start of a run. Touches no container without our label; EngineError when no
    engine answers.
    """
    api = connect()
    moment = time.time() if now is None else now
    with engine_errors("list containers"):
        ours = api.containers(all=True, filters={"label": f"{LABEL}=1"})
    abandoned = [container for container in ours if is_abandoned(container, moment)]
    for container in abandoned:
        remove(api, container["Id"])
    return [container["Names"][0].lstrip("/") for container in abandoned]


def remove(api: APIClient, container: str) -> None:
    """Kill and remove; a container that is gone or just being removed is no error."""
    from docker.errors import APIError

    with engine_errors("remove a container"):
        try:
            api.remove_container(container, force=True, v=True)
        except APIError as error:
            if error.status_code not in (404, 409):
                raise
