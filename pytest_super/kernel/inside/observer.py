"""Observes which processes run in the sandbox, by samples of /proc. Delivered into the sandbox.

Reports each process that names a file in its arguments, when it is first seen and when it ends. Whether that
was a run of a script is for the host to decide. Once metered, also reports the processor time of each sample.
Where there is no /proc (on macOS), nothing is reported.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections.abc import Callable
from signal import SIGHUP
from typing import Any

from pytest_super.kernel.inside import processes
from pytest_super.kernel.inside.expected_script import ExpectedScript
from pytest_super.kernel.inside.process_image import (
    Image,
    arguments_of,
    exit_status,
    has_symbol,
    layout_of,
    link,
    named_files,
    reads_terminal,
    repositories_of,
    zombie_status,
)
from pytest_super.kernel.inside.processor_time import TICKS, Family, ProcessorTime

PERIOD = 0.5
# With so many processes that a pass takes a larger share of the time than this, passes become rarer.
LARGEST_SHARE = 0.01
# But not rarer than this, in seconds: one pass over many large programs can take very long.
LONGEST_PAUSE = 5.0
# Ends of more processes at once are only known to the next pass: each takes one of our descriptors.
MOST_WATCHED = 256
# How many are reported in the life of a sandbox: Pythons, and others.
MOST_REPORTS = 2000
# How many the answer to a look names.
MOST_NAMED = 9
# In the commands of a program's own processes, which can outlive it for a moment, until its terminal ends.
HELPERS = ("multiprocessing", "loky")
# The clock of /proc, in seconds since the machine's start. Only Linux has it.
CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Process:
    """A process is known by its pid and its start, because pids are used again."""

    def __init__(self, pid: int, start: float) -> None:
        self.pid = pid
        self.start = start
        self.seen = start
        self.ended: float | None = None
        self.stopped = 0.0
        self.image: Image | None = None
        self.descriptor: int | None = None
        self.status: int | None = None


class Observer:
    """Samples our descendants, in a thread of its own."""

    def __init__(self, send: Callable[..., None], own_folder: str) -> None:
        """`send` sends a control frame to the host. Files in `own_folder` are not reported: the kernel's."""
        self._send = send
        self._own_folder = os.path.realpath(own_folder) + "/"
        self._workdir = os.path.realpath(os.getcwd())
        self._family = Family()
        # A kernel that is our fork is not a program that somebody has started.
        own = layout_of(processes.stat_of(os.getpid()))
        self._own_image = Image(os.getpid(), own) if own else None
        self._processes: dict[int, Process] = {}
        self._watched: dict[int, Process] = {}
        # Pythons are counted apart: a large build starts thousands of other processes that name files.
        self._reported = {True: 0, False: 0}
        self._expected = ExpectedScript()
        self._hung_up: list[str] = []
        # None until it is metered.
        self._processor_time: ProcessorTime | None = None
        self._pythons: dict[tuple[int, int, int], bool] = {}
        self._wake_read, self._wake_write = os.pipe()
        self._poll = select.poll()
        self._poll.register(self._wake_read, select.POLLIN)
        # The start of the machine, in seconds since 1970.
        self._epoch = time.time() - clock()

    def start(self) -> bool:
        """Whether processes can be observed here."""
        can_observe = os.path.isdir("/proc/self")
        if can_observe:
            threading.Thread(target=self._work_or_end, daemon=True).start()
        return can_observe

    def _work_or_end(self) -> None:
        """End the bridge with this thread: without it everything would run unseen and free of charge."""
        try:
            self._work()
        except BaseException:
            # Code inside can cause it, for example by a limit on our open files.
            sys.excepthook(*sys.exc_info())
            os._exit(1)

    def expect_script(self, path: str, content: bytes) -> None:
        """From now on, say of files whose path ends in `path` what is expected of the script."""
        self._expected = ExpectedScript(path, content)

    def meter(self, kernel: int) -> None:
        """From now on, report the processor time of the process `kernel` and of all processes that start."""
        self._processor_time = ProcessorTime(kernel)
        os.write(self._wake_write, b"m")

    def settle(self) -> None:
        """Take a sample now, report what has changed, and then tell the host that it has all reports."""
        os.write(self._wake_write, b"s")

    def _work(self) -> None:
        # Not at once: the kernel is starting.
        due = time.monotonic() + PERIOD
        while True:
            while (left := due - time.monotonic()) > 0:
                self._attend(left)
            began = time.thread_time()
            self._sample()
            pause = min((time.thread_time() - began) / LARGEST_SHARE, LONGEST_PAUSE)
            due = max(due + PERIOD, time.monotonic() + pause)

    def _attend(self, seconds: float) -> None:
        """Wait for ends of processes and for questions of the host."""
        ready = dict(self._poll.poll(seconds * 1000 + 1))
        is_asked = ready.pop(self._wake_read, None)
        for descriptor, event in ready.items():
            self._handle_end(self._watched[descriptor], event)
        if is_asked:
            asked = os.read(self._wake_read, 4096).count(b"s")
            self._sample()
            for _ in range(asked):
                reading = [" ".join(arguments_of(pid)[0]) for pid in self._processes if reads_terminal(pid)]
                hung_up, self._hung_up = self._hung_up, []
                self._send("observed", hung_up=", ".join(hung_up), reading=", ".join(reading[:MOST_NAMED]))

    def _sample(self) -> None:
        now, read, family = clock(), time.monotonic(), self._family.statistics()
        if self._processor_time is not None:
            self._send("used", seconds=self._processor_time.used(family, read))
        living = {pid: stat for pid, stat in family.items() if processes.is_alive(stat)}
        for pid in [pid for pid in self._processes if pid not in living]:
            self._end(self._processes.pop(pid), now)
        # A parent before its children, because a fork is compared with its parent.
        for pid in sorted(living, key=lambda pid: (int(living[pid][processes.START]), pid)):
            self._look(pid, living[pid], now)

    def _look(self, pid: int, stat: list[bytes], now: float) -> None:
        process, start = self._processes.get(pid), int(stat[processes.START]) / TICKS
        if process is not None and process.start != start:
            self._end(process, now)
            process = None
        if process is None:
            process = self._processes[pid] = Process(pid, start)
        elif stat[processes.STATE] in b"Tt":
            process.stopped += now - process.seen
        layout = layout_of(stat)
        if layout is not None and (process.image is None or process.image.layout != layout):
            self._begin(process, layout, int(stat[processes.PARENT]), now)
        process.seen = now

    def _begin(self, process: Process, layout: tuple[bytes, bytes], parent: int, now: float) -> None:
        """A process was first seen, or has called exec."""
        started, previous = process.start, process.image
        if previous is not None:
            # A fork calls exec at once, so most likely just after the sample that has seen the fork.
            started = process.seen if previous.is_fork else now
            self._report_end(process, now, replaced=True)
            process.stopped = 0.0
        process.image = image = Image(process.pid, layout)
        above = self._processes[parent].image if parent in self._processes else self._own_image
        image.is_fork = image.is_fork_of(above)
        if image.is_fork or min(self._reported.values()) >= MOST_REPORTS:
            return
        named = named_files(process.pid, image, above.folder if above else None)
        executable = link(f"/proc/{process.pid}/exe")
        if executable is not None and self._expected.is_named(executable):
            named["program"] = executable
        files = {name: path for name, path in named.items() if not path.startswith(self._own_folder)}
        if not files:
            return
        # Not for every process: it opens the program, and reads one that was not seen before.
        is_python = self._is_python(process.pid)
        if self._reported[bool(is_python)] >= MOST_REPORTS:
            return
        self._reported[bool(is_python)] += 1
        image.number = sum(self._reported.values())
        image.report = {
            "number": image.number,
            "pid": process.pid,
            "arguments": image.arguments,
            "executable": executable,
            "is_python": is_python,
            "files": {name: self._seen_from_workdir(path) for name, path in files.items()},
            "repositories": sorted(map(self._seen_from_workdir, repositories_of(files.values()))),
            "started": started + self._epoch,
            "only": sorted(map(self._seen_from_workdir, self._expected.only(files.values()))),
            **self._expected.compare(files.values()),
        }
        self._send("process", **image.report)
        self._watch(process)

    def _seen_from_workdir(self, path: str) -> str:
        """Relative to the sandbox's working directory, "" for itself; absolute if it is not in it."""
        if path == self._workdir:
            return ""
        prefix = self._workdir + "/"
        return path[len(prefix) :] if path.startswith(prefix) else path

    def _report_end(self, process: Process, now: float, **fields: Any) -> None:
        image = process.image
        if image is None or image.number is None:
            return
        image.number = None
        fields = {"ended": now + self._epoch, "stopped": process.stopped, "status": process.status, **fields}
        self._send("process", **image.report, **fields)

    # Ends

    def record_ends(self, ended: dict[int, int]) -> None:
        """Remember what ended with its terminal. The bridge's thread calls it."""
        for pid in (pid for pid, status in ended.items() if status == SIGHUP):
            process = self._processes.get(pid)
            command = " ".join(process.image.arguments if process and process.image else [])
            if len(self._hung_up) < MOST_NAMED and not any(name in command for name in HELPERS):
                self._hung_up.append(f"{pid} {command}".rstrip())

    def _watch(self, process: Process) -> None:
        """Open a descriptor that tells the moment of the end, and how, although we are not the parent."""
        if process.descriptor is not None or not hasattr(os, "pidfd_open"):
            return
        if len(self._watched) >= MOST_WATCHED:
            return
        try:
            process.descriptor = os.pidfd_open(process.pid)
        except OSError:
            return
        self._watched[process.descriptor] = process
        self._poll.register(process.descriptor, select.POLLIN)

    def _handle_end(self, process: Process, event: int) -> None:
        assert process.descriptor is not None
        process.ended = process.ended or clock()
        if event & select.POLLHUP:
            self._end(process, process.ended)
            return
        # Ended, but not reaped: without this, the poll would return at once until its parent reaps it.
        process.status = zombie_status(process.pid)
        self._poll.modify(process.descriptor, 0)

    def _end(self, process: Process, now: float) -> None:
        if process.status is None:
            process.status = zombie_status(process.pid)
        if process.descriptor is not None:
            process.status = exit_status(process.descriptor, otherwise=process.status)
            self._poll.unregister(process.descriptor)
            del self._watched[process.descriptor]
            os.close(process.descriptor)
            process.descriptor = None
        self._report_end(process, process.ended or now)

    def _is_python(self, pid: int) -> bool | None:
        """Whether it executes a Python, by its symbols: anything can have that name. None if unreadable."""
        try:
            # Not by the path, where code inside can have put another file or a pipe.
            with open(f"/proc/{pid}/exe", "rb") as file:
                info = os.fstat(file.fileno())
                key = (info.st_dev, info.st_ino, info.st_mtime_ns)
                if key not in self._pythons:
                    self._pythons[key] = has_symbol(file, (b"Py_BytesMain", b"libpython"))
                return self._pythons[key]
        except OSError:
            return None


def clock() -> float:
    return time.clock_gettime(CLOCK)
