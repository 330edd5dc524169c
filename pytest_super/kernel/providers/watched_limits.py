"""Limits on memory and processes where no cgroup enforces them: a sandbox that exceeds one is ended."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping

from pytest_super.kernel.inside.processes import is_alive
from pytest_super.kernel.inside.processor_time import Family

PERIOD = 1.0
OUT_OF_MEMORY = "out of memory"
# Positions among the fields of `stat_of`: the number of threads, and of pages in memory.
THREADS, RESIDENT = 17, 21
PAGE = os.sysconf("SC_PAGE_SIZE")


def watch(
    process: int, memory: int, pids: int, is_closed: threading.Event, end: Callable[[str], None]
) -> None:
    """Look at the descendants of the process until the sandbox is closed, or `end` gets a cause of death."""
    family = Family(process)
    while not is_closed.wait(PERIOD):
        stats = family.statistics()
        if cause := excess({pid: stat for pid, stat in stats.items() if is_alive(stat)}, memory, pids):
            end(cause)
            return


def excess(stats: Mapping[int, list[bytes]], memory: int, pids: int) -> str:
    if sum(int(stat[THREADS]) for stat in stats.values()) > pids:
        return f"more than {pids} processes and threads"
    resident = {pid: int(stat[RESIDENT]) * PAGE for pid, stat in stats.items()}
    # Forks share pages. To count these once takes the system longer, so it is asked only when it matters.
    if sum(resident.values()) > memory and sum(share(pid, all) for pid, all in resident.items()) > memory:
        return OUT_OF_MEMORY
    return ""


def share(pid: int, resident: int) -> int:
    """The bytes of the process, of shared pages its part; all that are resident if that cannot be read."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return resident
