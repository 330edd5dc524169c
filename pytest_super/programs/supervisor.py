"""The parent of a program on the host: whatever that starts stays a descendant of ours, and ends with us.

A process of its own, since pytest must not adopt the orphans of all that it has started. It begins with every
program, so that it imports next to nothing.
"""

from __future__ import annotations

import os
import select
import signal
import time

from pytest_super.kernel.inside.processes import (
    SIGKILL,
    adopt_orphans,
    go_on_when_parent_ends,
    kill_descendants,
    reap,
    send_signal,
)

# On our standard input: ask the program to end, or end all. When there is no more to read, by the end of who
# started us as well, all is ended and the folder is removed.
ASK, KILL = b"t", b"k"
# The first line that we tell, unless it says why there is no program. The second is its exit code; we tell no
# more when all has ended.
STARTED = "started"
# What we may not kill, another user's program say, is given up by then.
KILL_SECONDS = 5.0
# What Python ignores or catches and a program expects to find as it was.
SIGNALS = (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGXFSZ)


def main(command: str, folder: str, told: int) -> None:
    """Run `command` by the host's `sh` where we are, with our outputs and nothing to read.

    Writes to the descriptor `told`. Removes `folder` at its end.
    """
    adopt_orphans()
    go_on_when_parent_ends()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.set_inheritable(told, False)
    wake = wake_on_child()
    try:
        program = start(command)
    except OSError as error:
        tell(told, str(error))
        return
    tell(told, STARTED)
    leave_outputs()
    watch(program, wake, told)
    end_all()
    os.close(told)
    while os.read(0, 1):
        pass
    remove(folder)


def wake_on_child() -> int:
    """A descriptor on which something comes when a child has ended."""
    reader, writer = os.pipe()
    for descriptor in (reader, writer):
        os.set_blocking(descriptor, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def start(command: str) -> int:
    """The process, which has a session of its own. Raises OSError."""
    return os.posix_spawn(
        "/bin/sh",
        ["/bin/sh", "-c", command],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)],
        setsid=True,
        setsigdef=SIGNALS,
    )


def leave_outputs() -> None:
    """Hold neither the program's output open nor its folder."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(null, descriptor)
    os.chdir("/")


def watch(program: int, wake: int, told: int) -> None:
    """Do as we are told until all is to end."""
    is_running = True
    ready = select.poll()
    for descriptor in (0, wake):
        ready.register(descriptor, select.POLLIN)
    while True:
        come = [descriptor for descriptor, _ in ready.poll()]
        if wake in come:
            os.read(wake, 4096)
        ended = reap()
        if program in ended:
            is_running = False
            tell(told, str(os.waitstatus_to_exitcode(ended[program])))
        if 0 not in come:
            continue
        if os.read(0, 1) != ASK:
            return
        if is_running:
            ask_to_end(program)


def ask_to_end(program: int) -> None:
    try:
        os.killpg(program, signal.SIGTERM)
    except OSError:
        return


def end_all() -> None:
    """Kill whatever descends from us.

    What has a descendant that lives has a child: only when we have none, nothing was missed.
    """
    deadline = time.monotonic() + KILL_SECONDS
    while has_children() and time.monotonic() < deadline:
        kill_descendants()
        # One whose first thread has ended looks like a dead one.
        for pid in children():
            send_signal(pid, SIGKILL)


def has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def tell(told: int, line: str) -> None:
    try:
        os.write(told, f"{line}\n".encode())
    except OSError:
        return


def remove(folder: str) -> None:
    from pathlib import Path

    from pytest_super.kernel.providers.local import remove_tree

    remove_tree(Path(folder))
