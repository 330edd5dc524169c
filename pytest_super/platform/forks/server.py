"""`python server.py DESCRIPTOR IDLE PREPARATION`: a fork for each client, after the code PREPARATION.

DESCRIPTOR is of a socket that listens. A client sends its three standard streams and then a line, a JSON
object: the `code` of the fork, its `arguments`, its `folder`, its `environment`, and the signal that it gets
`at_end` of the client. The answer is a line with the id of the fork, and at its end one with its status.
The server ends when its standard input does or, if IDLE is not 0, after so many seconds without a fork.
It imports nothing of ours.
"""

from __future__ import annotations

import gc
import json
import os
import select
import shutil
import signal
import socket
import sys
from contextlib import suppress
from types import ModuleType
from typing import Any, NamedTuple

assert sys.platform == "linux"
# Sent to the whole group of processes. They end those who need the forks, and so the server.
MEANT_FOR_OTHERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Fork(NamedTuple):
    pid: int
    ended: int
    """A descriptor that can be read when the process has ended."""
    client: socket.socket
    at_end: int


def main() -> None:
    descriptor, idle, preparation = sys.argv[1:]
    # The folder of this file.
    del sys.path[0]
    exec(preparation, {"__name__": "preparation"})
    for number in MEANT_FOR_OTHERS:
        signal.signal(number, signal.SIG_IGN)
    # A collection of garbage would copy the pages that the forks share.
    gc.freeze()
    listener = socket.socket(fileno=int(descriptor))
    serve(listener, float(idle))
    shutil.rmtree(os.path.dirname(listener.getsockname()), ignore_errors=True)


def serve(listener: socket.socket, idle: float) -> None:
    """Fork until nobody needs it any more. By descriptor: a fork has one at its end, one of its client's."""
    forks: dict[int, Fork] = {}
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    if not idle:
        poll.register(0, select.POLLIN)
    while ready := poll.poll(idle * 1000 if idle and not forks else None):
        for descriptor, _ in ready:
            if descriptor == 0:
                return
            if descriptor == listener.fileno():
                if fork := forked(listener.accept()[0]):
                    forks[fork.ended] = forks[fork.client.fileno()] = fork
                    poll.register(fork.ended, select.POLLIN)
                    poll.register(fork.client, select.POLLIN)
            elif fork := forks.pop(descriptor, None):
                poll.unregister(descriptor)
                if descriptor != fork.ended:
                    signal.pidfd_send_signal(fork.ended, fork.at_end)
                    continue
                if forks.pop(fork.client.fileno(), None):
                    poll.unregister(fork.client)
                end(fork)
                kill_orphans({each.pid for each in forks.values()})


def forked(client: socket.socket) -> Fork | None:
    """The process for a client; None if the client was killed meanwhile."""
    _, streams, _, _ = socket.recv_fds(client, 1, 3)
    with client.makefile("rb") as lines:
        line = lines.readline()
    is_gone = not line.endswith(b"\n")
    given = {} if is_gone else json.loads(line)
    pid = -1 if is_gone else os.fork()
    if not pid:
        work(streams, given)
        # Only what the fork has forked itself comes here, and ends as an interpreter does.
        sys.exit()
    for stream in streams:
        os.close(stream)
    if is_gone:
        client.close()
        return None
    with suppress(OSError):
        client.sendall(b"%d\n" % pid)
    return Fork(pid, os.pidfd_open(pid), client, given["at_end"])


def end(fork: Fork) -> None:
    """Tell the client how its process has ended."""
    status = os.waitstatus_to_exitcode(os.waitpid(fork.pid, 0)[1])
    with suppress(OSError):
        fork.client.sendall(b"%d\n" % (status if status >= 0 else 128 - status))
    os.close(fork.ended)
    fork.client.close()


def kill_orphans(known: set[int]) -> None:
    """Kill what forks have left to us, if the preparation has made us the parent of orphans."""
    while True:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            orphans = set(map(int, file.read().split())) - known
        if not orphans:
            return
        for orphan in orphans:
            os.kill(orphan, signal.SIGKILL)
            os.waitpid(orphan, 0)


def work(streams: list[int], given: dict[str, Any]) -> None:
    """Run the code as an interpreter of its own would."""
    own = os.getpid()
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    for number in MEANT_FOR_OTHERS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(given["folder"])
    os.environ.clear()
    os.environ.update(given["environment"])
    sys.argv = ["-c", *given["arguments"]]
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = (open(place, "w", 1, closefd=False) for place in (1, 2))  # noqa: SIM115
    sys.modules["__main__"] = module = ModuleType("__main__")
    status = 1
    try:
        exec(given["code"], vars(module))
        status = 0
    finally:
        for written in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                written.flush()
        if os.getpid() == own:
            os._exit(status)


if __name__ == "__main__":
    main()
