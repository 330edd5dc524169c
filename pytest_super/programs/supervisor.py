"""The parent process of a program on the host. All the program's processes descend from it and end with it.

It is a separate process because pytest must not adopt the orphans of everything that it has started. It
imports very little, because it starts with every program.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress

from pytest_super.kernel.inside.processes import descendants, kill_all, reap, remove_tree, send_signal
from pytest_super.platform import MARKER, host, marked_processes

# Commands on our standard input: send SIGTERM to the program, or kill everything. At the end of the input,
# which also comes when the process that started us dies, everything is killed and the folder is removed.
ASK, KILL = b"t", b"k"
# The first line that we report; any other first line says why the program could not be started. The second
# line is its exit code. We close the reports when all processes have ended.
STARTED = "started"
# After this time we give up on processes that we are not allowed to kill, for example another user's.
KILL_SECONDS = 5.0
# Signals that Python ignores or catches; the program needs their default handlers.
SIGNALS = (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGXFSZ)


def main(command: str, folder: str, reports: int) -> None:
    """Run `command` by the host's `sh`, report to the descriptor `reports`, and remove `folder`."""
    # The program can have stopped us: then our parent's end wakes us to end everything.
    host().become_supervisor()
    # We end only with our input, because nobody else would kill the program's processes.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # `pass_fds` made it inheritable, but the program must not be able to write reports.
    os.set_inheritable(reports, False)
    wake = wake_on_child()
    try:
        program = start(command)
    except OSError as error:
        write_line(reports, str(error))
        return
    write_line(reports, STARTED)
    # Our copy of the program's output would keep it from ending before us, and its folder is removed.
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(null, descriptor)
    os.chdir("/")
    watch(program, wake, reports)
    end_all()
    os.close(reports)
    # The answer file is read after the program's end, so the folder stays until our input ends.
    while os.read(0, 1):
        pass
    remove_tree(folder)


def wake_on_child() -> int:
    """A descriptor that becomes readable when a child has ended."""
    reader, writer = os.pipe()
    for descriptor in (reader, writer):
        os.set_blocking(descriptor, False)
    # Python writes to the wake-up descriptor only for signals that have a Python handler.
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def start(command: str) -> int:
    """Start the program in its own session; returns its pid. Raises OSError."""
    # Not subprocess, to import little.
    return os.posix_spawn(
        "/bin/sh",
        ["/bin/sh", "-c", command],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)],
        setsid=True,
        setsigdef=SIGNALS,
    )


def watch(program: int, wake: int, reports: int) -> None:
    """Report the program's end and obey commands, until everything has to end."""
    is_running = True
    ready = select.poll()
    for descriptor in (0, wake):
        ready.register(descriptor, select.POLLIN)
    while True:
        readable = [descriptor for descriptor, _ in ready.poll()]
        if wake in readable:
            os.read(wake, 4096)
        ended = reap()
        if program in ended:
            is_running = False
            write_line(reports, str(os.waitstatus_to_exitcode(ended[program])))
        if 0 not in readable:
            continue
        if os.read(0, 1) != ASK:
            return
        if is_running:
            with suppress(OSError):
                os.killpg(program, signal.SIGTERM)


def end_all() -> None:
    """Kill all our descendants, and all processes with our mark.

    On Linux orphans become our children, so no descendant is left when we have no child. Elsewhere only the
    mark finds orphans.
    """
    mark = os.environ.get(MARKER, "")
    deadline = time.monotonic() + KILL_SECONDS
    kill_all(lambda: marked_processes(mark))
    while has_children() and time.monotonic() < deadline:
        kill_all(lambda: descendants(os.getpid()))
        reap()
        # A process whose first thread has ended looks dead, so `descendants` does not list it.
        for pid in host().children():
            send_signal(pid, signal.SIGKILL)


def has_children() -> bool:
    """Whether a child is left. Reaps one that has ended."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def write_line(reports: int, line: str) -> None:
    with suppress(OSError):
        os.write(reports, f"{line}\n".encode())
