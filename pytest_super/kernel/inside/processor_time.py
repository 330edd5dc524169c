"""The processor time that processes in the sandbox use. Delivered into the sandbox."""

from __future__ import annotations

import os
import time

from pytest_super.kernel.inside import processes

TICKS = os.sysconf("SC_CLK_TCK")


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
