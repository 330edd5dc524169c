"""Our descendants, found without reading about every process of the machine each time.

Delivered into the sandbox.
"""

from __future__ import annotations

import os

from pytest_super.kernel.inside import processes

# After so many passes all processes are read again. A pid can be used again, but only after all others.
PASSES = 20


class Family:
    """Finds our descendants again and again. A local sandbox shares its machine with hundreds of others."""

    def __init__(self) -> None:
        self._others: set[int] = set()
        self._passes = 0

    def statistics(self) -> dict[int, list[bytes]]:
        """Those of all our descendants by pid, with zombies."""
        pids = processes.pids()
        self._others = self._others & pids if self._passes % PASSES else set()
        self._passes += 1
        stats = processes.statistics(pids - self._others)
        parents = {pid: int(stat[processes.PARENT]) for pid, stat in stats.items()}
        family = processes.descendants(os.getpid(), parents)
        # Of a process whose parent has just ended nothing is known yet: it is not among those below pid 0.
        below_0 = processes.descendants(0, dict.fromkeys(self._others, 0) | parents)
        self._others = below_0 - family
        return {pid: stats[pid] for pid in family}
