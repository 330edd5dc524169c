"""The address at which a program on the host can act in its trial by the Model Context Protocol."""

import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pytest_super.errors import InfrastructureError
from pytest_super.programs import mcp_server
from pytest_super.programs.trial_client import URL

# The time that the server has to end by itself.
END_SECONDS = 2.0


@contextmanager
def mcp_address(environment: Mapping[str, str]) -> Iterator[str]:
    """The address within the block; without the SDK it says what to install. Raises InfrastructureError."""
    if not mcp_server.is_installed():
        yield f"{environment[URL]}{mcp_server.PATH}"
        return
    address = McpAddress(environment)
    try:
        yield address.url
    finally:
        address.close()


class McpAddress:
    """Listens on the loopback. The first client starts the server's process, which takes 65 MB."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Raises InfrastructureError."""
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        except OSError as error:
            raise InfrastructureError(f"no address for the program's tools: {error}") from error
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}{mcp_server.PATH}"
        self._closing, self._close = os.pipe()
        self._starter = threading.Thread(target=self._start_for_client, daemon=True)
        self._starter.start()

    def close(self) -> None:
        """End the server."""
        os.close(self._close)
        self._starter.join()
        os.close(self._closing)
        self._listener.close()
        if self._process is not None:
            end(self._process)

    def _start_for_client(self) -> None:
        # Not `select`, which does not support descriptors above 1023.
        ready = select.poll()
        ready.register(self._listener, select.POLLIN)
        ready.register(self._closing, select.POLLIN)
        if all(descriptor == self._listener.fileno() for descriptor, _ in ready.poll()):
            self._process = start(self._listener.fileno(), self._environment)
            # Otherwise clients of a server that has died would wait for ever.
            self._listener.close()


def start(listener: int, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    # -P, because a file of the user's project can have the name of a module.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", mcp_server.__name__, str(listener)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[listener],
        # Ctrl-C is for pytest, which then closes the server's input.
        start_new_session=True,
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """Close the server's input, which ends it, as the end of our process does."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
