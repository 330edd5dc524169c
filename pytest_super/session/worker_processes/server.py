"""`python -m pytest_super.session.worker_processes.server DESCRIPTOR`: forks a worker for each client.

DESCRIPTOR is of a socket that listens. The server ends when its standard input does.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from types import ModuleType
from typing import Any, NoReturn

# What a worker imports, but no plugin of pytest: pytest rewrites their assertions when it imports them.
MODULES = (
    "execnet",
    "jupyter_client.session",
    "pytest",
    "unittest",
    "pytest_super.kernel.client",
    "pytest_super.kernel.providers.local",
    "pytest_super.metrics.script_runs.trial_runs",
    "pytest_super.model.gateway_process",
    "pytest_super.session.activation",
    "pytest_super.session.kernels",
    "pytest_super.session.models",
    "pytest_super.session.papers",
    "pytest_super.session.runner",
    "pytest_super.tasks.loading",
)
# Sent to the whole group of processes. They end the controller and the workers, and so the server.
MEANT_FOR_OTHERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    for name in MODULES:
        importlib.import_module(name)
    for number in MEANT_FOR_OTHERS:
        signal.signal(number, signal.SIG_IGN)
    # A collection of garbage would copy the pages that the forks share.
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))


def serve(listener: socket.socket) -> None:
    """Fork until the starter ends."""
    clients: dict[int, tuple[int, socket.socket]] = {}
    poll = select.poll()
    for descriptor in (0, listener.fileno()):
        poll.register(descriptor, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == 0:
                return
            if descriptor == listener.fileno():
                client, _ = listener.accept()
                if not (pid := forked(client)):
                    continue
                ended = end_of(pid)
                clients[ended] = clients[client.fileno()] = pid, client
                poll.register(ended, select.POLLIN)
                poll.register(client, select.POLLIN)
            elif descriptor in clients:
                end(descriptor, clients, poll)


def end_of(pid: int) -> int:
    """A descriptor that can be read when the process has ended."""
    if sys.platform == "linux":
        return os.pidfd_open(pid)
    raise NotImplementedError(sys.platform)


def end(descriptor: int, clients: dict[int, tuple[int, socket.socket]], poll: select.poll) -> None:
    """Of a worker, or of its client, which xdist kills in its place."""
    pid, client = clients[descriptor]
    with suppress(ProcessLookupError):
        if descriptor == client.fileno():
            os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(OSError):
        client.sendall(bytes([status if status >= 0 else 128 - status]))
    for each in [one for one, (known, _) in clients.items() if known == pid]:
        poll.unregister(each)
        del clients[each]
        if each != client.fileno():
            os.close(each)
    client.close()


def forked(client: socket.socket) -> int:
    """The process of a new worker; 0 if the client was killed meanwhile."""
    _, streams, _, _ = socket.recv_fds(client, 1, 3)
    with client.makefile("rb") as lines:
        line = lines.readline()
    if not line.endswith(b"\n"):
        client.close()
        return 0
    given = json.loads(line)
    pid = os.fork()
    if not pid:
        work(streams, given)
    for stream in streams:
        os.close(stream)
    return pid


def work(streams: list[int], given: dict[str, Any]) -> NoReturn:
    """Run the code as an interpreter of its own would."""
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    for number in MEANT_FOR_OTHERS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(given["folder"])
    os.environ.clear()
    os.environ.update(given["environment"])
    sys.argv = ["-c"]
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
        os._exit(status)


if __name__ == "__main__":
    main()
