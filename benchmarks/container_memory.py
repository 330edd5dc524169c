"""Measures the memory of the containers of some tasks: the highest sum of what `docker stats` shows."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pytest_super.kernel.providers.docker.engine import connect

EVERY_SECONDS = 2.0
# Our containers have it, and its value is the id of their task.
TASK_LABEL = "pytest-super.task"


def containers_of(names: Sequence[str]) -> list[str]:
    """The ids of the containers of some tasks."""
    found = connect().containers(filters={"label": TASK_LABEL})
    return [one["Id"] for one in found if one["Labels"][TASK_LABEL] in names]


class ContainerMemory:
    """The highest sum of the memory of the containers of some tasks, in bytes."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.peak = 0

    def take(self) -> None:
        self.peak = max(self.peak, sum(map(memory_of, containers_of(self._names))))

    @contextmanager
    def watching(self) -> Iterator[None]:
        is_over = threading.Event()

        def watch() -> None:
            while not is_over.wait(EVERY_SECONDS):
                self.take()

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


def memory_of(container: str) -> int:
    """As `docker stats` shows it: without files that are cached and not in use. 0 if it has ended."""
    from docker.errors import APIError

    try:
        stats = connect().stats(container, stream=False, one_shot=True)["memory_stats"]
    except (APIError, ValueError):
        # The engine's answer is empty if the container ends meanwhile.
        return 0
    more: dict[str, Any] = stats.get("stats", {})
    # The first is that of version 1 of control groups.
    unused = more.get("total_inactive_file", more.get("inactive_file", 0))
    return int(stats.get("usage", 0)) - int(unused)
