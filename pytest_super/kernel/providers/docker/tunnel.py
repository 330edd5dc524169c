"""Tunnels to the engines of other machines, by the system's ssh.

docker-py's own way starts an ssh for each connection, of which a container holds three: 0.35 s each, where
a tunnel takes 0.17 s for all. It also needs paramiko, and its reads wait until their buffer is full.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from time import sleep
from urllib.parse import urlsplit

from pytest_super.kernel.providers.docker.start_slots import LOOK_SECONDS, slot

# No question, no shared connection (which would end with its owner), and an end if the network is gone.
OPTIONS = ["-T", "-S", "none", "-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes"]
OPTIONS += ["-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=15"]
# Outlives this process by the moment that ssh needs to end, so nothing stays even after SIGKILL.
# The shell survives a SIGTERM to both, and removes the folder.
SCRIPT = 'trap : TERM; folder=$1; shift; ssh "$@"; status=$?; rm -rf "$folder"; exit $status'
# A socket's path has at most 107 bytes.
LONGEST_FOLDER = 50
# A server of OpenSSH lets at most ten strangers in at a time.
AT_ONCE = 4


class Tunnel:
    """A socket of this machine that leads to the engine's. It ends with this process."""

    def __init__(self, url: str) -> None:
        """Raises OSError with what ssh says if it cannot connect."""
        parts = urlsplit(url)
        place = "/tmp" if len(tempfile.gettempdir()) > LONGEST_FOLDER else None
        self._folder = tempfile.mkdtemp(prefix="pytest-super-tunnel-", dir=place)
        self._path = f"{self._folder}/socket"
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self._said = ""
        forward = f"{self._path}:{parts.path or '/var/run/docker.sock'}"
        # `cat` ends with its input, which ends with this process.
        arguments = [*OPTIONS, "-L", forward, f"ssh://{parts.netloc}", "cat"]
        self._process = subprocess.Popen(
            ["sh", "-c", SCRIPT, "sh", self._folder, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._log,
            # Ctrl-C must not end it before the containers are removed.
            start_new_session=True,
        )
        while not os.path.exists(self.socket()):
            sleep(LOOK_SECONDS)
        atexit.register(self._close)

    def socket(self) -> str:
        """The path of the socket. Raises OSError if ssh has ended."""
        if self._process.poll() is not None:
            self._close()
            raise ConnectionError(self.words() or "ssh has ended")
        return self._path

    def words(self) -> str:
        """The last line that ssh has said."""
        # It fails when another thread has closed the log, and then what was said is known.
        with suppress(OSError, ValueError):
            said = os.pread(self._log.fileno(), 2**16, 0).decode(errors="replace").split("\n")
            self._said = next((line.strip() for line in reversed(said) if line.strip()), "")
        return self._said

    def _close(self) -> None:
        """End ssh, if it has not ended, and close what leads to it."""
        self.words()
        self._log.close()
        if self._process.poll() is None:
            # Without its input alone, ssh would wait for the connections that are still open.
            os.killpg(self._process.pid, signal.SIGTERM)
        self._process.communicate()


@cache
def tunnel(url: str) -> Tunnel:
    """The tunnel of this process to an engine. Raises OSError."""
    with slot("ssh", AT_ONCE):
        return Tunnel(url)
