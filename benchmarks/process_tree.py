"""Measures a command with all its descendants: seconds, processor seconds, peak of proportional memory (PSS).

PSS counts a page that n processes share as 1/n of a page in each, so that the sum over a tree is the memory
that it really uses. Linux only.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Reading one process's memory map takes about a millisecond of processor time, and `load.py` has eighteen.
EVERY_SECONDS = 2.0
# What a process uses after the last look at it is not counted.
LOOKS = 10
TICKS = os.sysconf("SC_CLK_TCK")
PSS = re.compile(rb"^Pss:\s+(\d+) kB", re.MULTILINE)
MIB = 2**20

# Byte code is cached, as on a developer's machine.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
# Only the plugins that an installation of ours includes. Others would increase the memory of each worker.
ONLY_REQUIRED_PLUGINS = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTEST_PLUGINS": "pytest_super.plugin,xdist.plugin,pytest_timeout",
}


@dataclass
class Peak:
    """In bytes. Sampling can miss a peak that lasts less than EVERY_SECONDS."""

    total: int = 0
    """The highest sum over all processes at one moment."""
    by_process: dict[int, int] = field(default_factory=dict)
    commands: dict[int, str] = field(default_factory=dict)

    def of(self, word: str) -> list[int]:
        """The peak of each process whose command line contains `word`, smallest first."""
        return sorted(peak for pid, peak in self.by_process.items() if word in self.commands[pid])

    def take(self, memory: Mapping[int, int]) -> None:
        self.total = max(self.total, sum(memory.values()))
        for pid, held in memory.items():
            if pid not in self.commands:
                self.commands[pid] = command_line(pid)
            self.by_process[pid] = max(held, self.by_process.get(pid, 0))


@dataclass
class Processor:
    """Processor seconds of processes that may have ended."""

    by_process: dict[int, float] = field(default_factory=dict)
    commands: dict[int, str] = field(default_factory=dict)

    def take(self, pids: Iterable[int]) -> None:
        for pid in pids:
            if (used := seconds_of(pid)) is not None:
                self.by_process[pid] = used
                self.commands[pid] = command_line(pid) or self.commands.get(pid, "")

    def by_part(self, parts: Mapping[str, str]) -> dict[str, float]:
        """Most first. `parts` maps words in a command line to the name of a part; the rest is "other"."""
        found: defaultdict[str, float] = defaultdict(float)
        for pid, used in self.by_process.items():
            names = (name for word, name in parts.items() if word in self.commands[pid])
            found[next(names, "other")] += used
        return dict(sorted(found.items(), key=lambda one: -one[1]))


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One run of a command."""

    seconds: float
    """From its start to its end."""
    peak: Peak
    processor: Processor
    output: str


def measure(command: Sequence[str], *, folder: Path, environment: dict[str, str]) -> Measured:
    """Run a command to its end, with these variables added to ours.

    Raises SystemExit with its output if it fails.
    """
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=ENVIRONMENT | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    peak, processor, is_over = Peak(), Processor(), threading.Event()
    sampler = threading.Thread(target=sample, args=(process.pid, peak, processor, is_over))
    sampler.start()
    try:
        output, _ = process.communicate()
        seconds = time.monotonic() - began
    finally:
        is_over.set()
        sampler.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed ({process.returncode}):\n{output[-5000:]}")
    return Measured(seconds=seconds, peak=peak, processor=processor, output=output)


def sample(root: int, peak: Peak, processor: Processor, is_over: threading.Event) -> None:
    looks = 0
    while not is_over.wait(EVERY_SECONDS / LOOKS):
        pids = [root, *descendants(root)]
        processor.take(pids)
        looks += 1
        if not looks % LOOKS:
            peak.take({pid: held for pid in pids if (held := held_by(pid)) is not None})


def descendants(root: int) -> list[int]:
    """The descendants whose parents all live. No benchmarked process outlives its parent for long."""
    children: list[int] = []
    for path in Path(f"/proc/{root}/task").glob("*/children"):
        try:
            children += map(int, path.read_text().split())
        except OSError:
            continue
    return children + [pid for child in children for pid in descendants(child)]


def held_by(pid: int) -> int | None:
    """The PSS of a process in bytes; None if it has ended."""
    try:
        found = PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_bytes())
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def seconds_of(pid: int) -> float | None:
    """The processor seconds of a process, without its children's; None if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # Behind the name, which can contain anything.
    user, system = text.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / TICKS


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
