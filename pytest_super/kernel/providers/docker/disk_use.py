"""How many bytes a container has written: blocks, not the sizes of files, which can have holes.

And the thread of a container that enforces its disk limit and renews its deadline.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.providers.docker.attach import start_program
from pytest_super.kernel.providers.docker.engine import connect, engine_errors
from pytest_super.kernel.providers.docker.sweep import LEASE

if TYPE_CHECKING:
    from docker import APIClient

# Runs in the container. Most engines add up sizes, so the holes are subtracted. Folders of other file systems
# are not the container's own.
HOLES = """
import os
device, seen, total = os.lstat("/").st_dev, set(), 0
for folder, folders, names in os.walk("/"):
    paths = {name: os.path.join(folder, name) for name in folders + names}
    stats = {}
    for name, path in paths.items():
        try:
            stats[name] = os.lstat(path)
        except OSError:
            pass
    folders[:] = [name for name in folders if name in stats and stats[name].st_dev == device]
    for name in names:
        found = stats.get(name)
        if found and (found.st_dev, found.st_ino) not in seen:
            hole = found.st_size - 512 * found.st_blocks
            if hole > 2**20:
                seen.add((found.st_dev, found.st_ino))
                total += hole
print(total)
"""
# Isolated and without `site`, so that nothing that was installed inside runs here.
COMMAND = ["python3", "-I", "-S", "-c", HOLES]
# Digits of an answer. Code inside can replace the container's Python, and answer anything.
LONGEST_ANSWER = 30
ANSWER_SECONDS = 60.0
CHECK_SECONDS = 3.0
LONGEST_PAUSE = 30.0
FASTEST_BYTES = 2 * 2**30
"""The most that a container writes in a second. No check is needed before it can be at its limit."""
RENEW_SECONDS = LEASE / 3
"""Early enough to repeat failed renewals before the deadline."""
COST_SHARE = 0.05
"""The most of the time that measuring can take: the engine walks the written files, 0.6 s for 100,000."""


def bytes_written(container: str, limit: int) -> int:
    """The bytes that a container has written. Up to `limit`, holes count too, because that is much faster."""
    api = connect()
    with engine_errors("measure a container's files"):
        size = bytes_with_holes(api, container)
        return size if size <= limit else size - holes(api, container)


def bytes_with_holes(api: APIClient, container: str) -> int:
    """The sizes of the files that a container has written. Its image is as large: the engine fills holes."""
    # docker-py's `inspect_container` cannot ask for the size.
    url = f"{api.base_url}/v{api.api_version}/containers/{container}/json"
    return int(api.get(url, params={"size": "1"}, timeout=api.timeout).json().get("SizeRw") or 0)


def holes(api: APIClient, container: str) -> int:
    """The bytes in holes of its files; 0 if code inside prevents the answer."""
    program = api.exec_create(container, COMMAND, stderr=False)["Id"]
    with closing(start_program(api, program)) as stream:
        timer = threading.Timer(ANSWER_SECONDS, stream.close)
        timer.daemon = True
        timer.start()
        answer = b""
        while len(answer) <= LONGEST_ANSWER and (piece := stream.read(LONGEST_ANSWER)):
            answer += piece
        timer.cancel()
    return int(answer) if answer.strip().isdigit() and len(answer) <= LONGEST_ANSWER else 0


def watch(
    ended: threading.Event,
    limit: int,
    measure: Callable[[], int],
    kill: Callable[[int], None],
    renew: Callable[[], None],
) -> None:
    """Call `measure` every few seconds, `kill` above `limit`, `renew` in time, until a kill or the event."""
    renewed = time.monotonic()
    left, cost = limit, 0.0
    while not ended.wait(max(CHECK_SECONDS, min(left / FASTEST_BYTES, LONGEST_PAUSE), cost / COST_SHARE)):
        began = time.monotonic()
        # The end of the stream reports an engine that does not answer.
        with suppress(InfrastructureError):
            written = measure()
            left = limit - written
            # A trial can have ended during the measurement; then it is not over its limit.
            if left < 0 and not ended.is_set():
                kill(written)
                return
            if began - renewed > RENEW_SECONDS:
                renew()
                renewed = began
        cost = time.monotonic() - began
