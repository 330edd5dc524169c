"""`python -IS client.py SOCKET … -c CODE`: a program in place of an interpreter that runs the code."""

import json
import os
import signal
import socket
import sys

# For the status, after the id of the process.
WAIT = 'read process; read status; exit "${status:-1}"'


def main() -> None:
    """Let a fork run the code with our streams, and end with its status."""
    # These are for the fork, which heeds them in order.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    given = {
        "code": sys.argv[-1],
        "arguments": [],
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "at_end": signal.SIGKILL,
    }
    server = socket.socket(socket.AF_UNIX)
    server.connect(sys.argv[1])
    # First the streams: they come with the first bytes.
    socket.send_fds(server, [b"0"], [0, 1, 2])
    server.sendall(json.dumps(given).encode() + b"\n")
    # Only the fork may keep them open: their end tells xdist that it died.
    os.dup2(server.fileno(), 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    # A shell that waits needs an eighth of the memory.
    os.execv("/bin/sh", ["sh", "-c", WAIT])


main()
