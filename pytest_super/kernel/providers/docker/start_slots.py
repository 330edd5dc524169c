"""Slots for the start of containers, which all processes of this user on this machine share."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import sleep
from typing import IO

SLOTS = max(16, 4 * (os.cpu_count() or 1))
"""On two cores, 16 containers are ready after 9.1 s with 16 slots and 11.0 s with 8, and the engine's longest
answer takes 3.1 s and 2.0 s (`benchmarks/start_slots.py`). So fewer slots would cost time."""
LOOK_SECONDS = 0.05


@contextmanager
def start_slot() -> Iterator[None]:
    """Limit how many containers start at the same time: wait for a slot and hold it. Raises OSError.

    The end of the process frees it, too.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(open_slot(number)) for number in range(SLOTS)]
        while not any(map(take, files)):
            sleep(LOOK_SECONDS)
        yield


def open_slot(number: int) -> IO[str]:
    # The files are never removed, or two processes could hold locks on two files of one name.
    return Path(tempfile.gettempdir(), f"pytest-super-start-{os.getuid()}-{number}").open("a")


def take(file: IO[str]) -> bool:
    """Take the slot if it is free. Returns whether it was."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
