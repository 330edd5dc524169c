"""Our descendants, found without reading about all processes of the machine, and their processor time.

Delivered into the sandbox.
"""

from __future__ import annotations

import os
import time

from pytest_super.kernel.inside import processes

TICKS = os.sysconf("SC_CLK_TCK")
# After so many passes all processes are read again. A pid can be used again, but only after all others.
PASSES = 20


class Family:
    """Finds descendants again and again. A local sandbox shares its machine with hundreds of others."""

    def __init__(self, root: int | None = None) -> None:
        """`root` is the process whose descendants count, by default our own."""
        self._root = root or os.getpid()
        self._others: set[int] = set()
        self._passes = 0

    def statistics(self) -> dict[int, list[bytes]]:
        """Map the pids of all descendants, zombies too, to their statistics."""
        pids = processes.pids()
        self._others = self._others & pids if self._passes % PASSES else set()
        self._passes += 1
        stats = processes.statistics(pids - self._others)
        parents = {pid: int(stat[processes.PARENT]) for pid, stat in stats.items()}
        family = processes.descendants(self._root, parents)
        # Of a process whose parent has just ended nothing is known yet: it is not among those below pid 0.
        self._others = processes.descendants(0, {**dict.fromkeys(self._others, 0), **parents}) - family
        return {pid: stats[pid] for pid in family}


class ProcessorTime:
    """Counts the kernel, and the processes that have started since this object was made."""

    def __init__(self, kernel: int) -> None:
        # Not by their start times, which are too coarse: the next cell can follow within a tick.
        stats = processes.statistics(processes.pids())
        self._before = {(pid, stat[processes.START]) for pid, stat in stats.items() if pid != kernel}
        # The last own times of the processes that are not counted. Kept after their end, when those of the
        # process that waited for them include theirs.
        self._free: dict[tuple[int, bytes], int] = {}
        self._last: float | None = None
        self._last_read = 0.0

    def used(self, stats: dict[int, list[bytes]], read: float) -> float:
        """Seconds since the last call, at most the time since then; 0.0 in the first.

        `stats`: those of all our descendants, with zombies, read from the monotonic time `read` on. The time
        is measured here, because the host can receive a sample late and the next one at once.

        The system adds the times of a process to those of the process that waits for its end, so the sum
        counts each process once.
        """
        ticks = 0
        for pid, stat in stats.items():
            own, waited_for = processes.ticks_of(stat)
            ticks += own + waited_for
            if (pid, stat[processes.START]) in self._before:
                self._free[pid, stat[processes.START]] = own
        ours = os.times()
        total = ours.children_user + ours.children_system + (ticks - sum(self._free.values())) / TICKS
        last, self._last = self._last, total
        # Not less than the time in which this was used, however long the reading took.
        passed, self._last_read = time.monotonic() - self._last_read, read
        # The sum shrinks when a process ends whose parent ignores its children.
        return 0.0 if last is None else max(0.0, min(total - last, passed))
