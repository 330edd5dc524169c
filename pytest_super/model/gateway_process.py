"""The gateway's process as its clients see it: the first starts it, and any client restarts it."""

from __future__ import annotations

import fcntl
import http.client
import os
import signal
import sys
import tempfile
import threading
import time
from contextlib import closing, suppress
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from pytest_super.model.api import WAIT, credentials
from pytest_super.model.completion import ModelError
from pytest_super.model.unix_http import UnixConnection, connected
from pytest_super.model.waiting import Downtime
from pytest_super.store.json_lines import to_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_super.model.settings import ModelSettings
    from pytest_super.model.unix_http import HttpResponse

READY_SECONDS = 60.0
MAX_STARTS = 3
# A call takes as long as its provider does, so a late answer alone proves nothing, and the gateway is asked
# what the call waits for, often enough for the live display of the run.
# The time-out is much longer than one request keeps the gateway's event loop busy.
HEALTH_CHECK_AFTER, HEALTH_TIMEOUT = 3.0, 60.0
# A socket's path has at most 107 bytes.
LONGEST_FOLDER = 50


class Gateway:
    """The connection of one process to the gateway of its run; all processes of a machine share the gateway.

    `start` returns at once, so that the gateway starts while the first sandbox does.
    """

    def __init__(
        self,
        run_id: str,
        settings: ModelSettings,
        token: str,
        *,
        health_check_after: float = HEALTH_CHECK_AFTER,
        health_timeout: float = HEALTH_TIMEOUT,
    ) -> None:
        """`token` is known to the gateway and to all its clients.

        While a call waits, the gateway's health is checked every `health_check_after` seconds.
        A gateway that does not answer the check within `health_timeout` seconds is killed and replaced.
        """
        self.settings = settings
        self.run_id = run_id
        self._token = token
        self.folder = private_folder(run_id)
        self._health_check_after = health_check_after
        self._health_timeout = health_timeout
        self._starts = 0
        self._lease: UnixConnection | None = None
        """An open connection, which keeps the gateway from ending between calls."""
        self._leasing = threading.Lock()
        self.downtime = Downtime()
        """Of gateways that start, or are replaced."""
        self._starter_pipes: list[BinaryIO] = []
        """Our ends of pipes to the gateways, which are closed when this process ends."""

    @property
    def socket(self) -> Path:
        return self.folder / "socket"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def start(self) -> None:
        """Start the gateway, unless it runs already. Raises ModelError if it keeps dying."""
        # A gateway removes its folder when it ends.
        private_folder(self.run_id)
        lock = os.open(self.folder / "alive", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._starts == MAX_STARTS:
                raise ModelError(f"the model gateway does not start: {self.last_log_line()}", is_final=True)
            self._starts += 1
            self._spawn(lock)
        except BlockingIOError:
            # A gateway holds the lock, so it is running.
            return
        finally:
            # The gateway keeps the lock: it belongs to the open file, which the gateway has inherited.
            os.close(lock)

    def _spawn(self, lock: int) -> None:
        reader, writer = os.pipe()
        pipe = open(writer, "wb", 0)  # noqa: SIM115
        self._starter_pipes.append(pipe)
        # -P, because a file of the user's project can have the name of a module.
        command = [sys.executable, "-P", "-m", "pytest_super.model.gateway", str(self.folder)]
        try:
            spawn(command, reader, lock, self.log)
        finally:
            os.close(reader)
        # Not in a file, an argument or a variable, which code in a local sandbox can read.
        given = {"token": self._token, "settings": asdict(self.settings)}
        # If the gateway has died already, `connect` starts another.
        with suppress(BrokenPipeError):
            pipe.write(to_line(given).encode())

    def send(
        self,
        method: str,
        path: str,
        data: bytes,
        headers: dict[str, str],
        seconds_left: Callable[[], float] = lambda: inf,
        opened: Callable[[UnixConnection], None] = lambda _: None,
        waits_for: Callable[[str], None] = lambda _: None,
        read: Callable[[UnixConnection], HttpResponse] = UnixConnection.read_response,
    ) -> HttpResponse:
        """The gateway's answer. A gateway that died or hangs is replaced, and the request is sent again.

        `opened` is called before each try; an exception that it raises ends the request. `waits_for` is told
        from time to time what keeps the answer, and `read` reads it. Raises ModelError, and TimeoutError when
        no `seconds_left`, which can rise meanwhile.
        """
        headers = {**headers, **credentials(self._token)}
        for _ in range(MAX_STARTS):
            with closing(self.connect()) as connection:
                opened(connection)
                # A start of the gateway takes seconds, after which the call can be too late.
                if seconds_left() <= 0:
                    raise TimeoutError
                try:
                    self._send_request(connection, method, path, data, headers)
                    if self._is_answered(connection, seconds_left, headers, waits_for):
                        return read(connection)
                except (OSError, http.client.HTTPException):
                    self.drop_lease()
                    continue
            # Only a lack of time leads here: an answer has returned, and a broken connection has continued.
            raise TimeoutError
        raise ModelError(f"the model gateway died {MAX_STARTS} times on one call: {self.last_log_line()}")

    def connect(self) -> UnixConnection:
        """A connection to the gateway, once it is up. Raises ModelError."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                with self._leasing:
                    if self._lease is None:
                        self._lease = connected(self.socket)
                connection = connected(self.socket, self._health_timeout)
            except OSError:
                self.downtime.begin()
                self.drop_lease()
                if time.monotonic() > deadline:
                    raise ModelError(f"the model gateway does not answer: {self.last_log_line()}") from None
                self.start()
                time.sleep(0.05)
            else:
                # A gateway that answered was able to start, whatever happened to it later.
                self._starts = 0
                self.downtime.end()
                return connection

    def _send_request(
        self, connection: UnixConnection, method: str, path: str, data: bytes, headers: dict[str, str]
    ) -> None:
        try:
            connection.request(method, path, data, headers)
        except TimeoutError:
            # The buffer of a hanging gateway's socket is full.
            self._wait_of(headers)
            raise

    def _is_answered(
        self,
        connection: UnixConnection,
        seconds_left: Callable[[], float],
        headers: dict[str, str],
        waits_for: Callable[[str], None],
    ) -> bool:
        """Wait for the answer; False if no time is left. Raises ConnectionError if the gateway hangs."""
        while not connection.is_answered_within(min(self._health_check_after, seconds_left())):
            if seconds_left() <= 0:
                return False
            waits_for(self._wait_of(headers))
        return True

    def _wait_of(self, headers: dict[str, str]) -> str:
        """What the call waits for. Raises ConnectionError after killing a gateway that does not answer."""
        try:
            # Read before the check: later it could be the next gateway's, which another client has started.
            process = int((self.folder / "pid").read_text())
            with closing(connected(self.socket, self._health_timeout)) as connection:
                connection.request("GET", WAIT, headers=headers)
                response = connection.read_response()
                # Any answer is a sign of life.
                return response.body.decode() if response.status == 200 else ""
        # Any other OSError means that it has died, and `send` tries again.
        except TimeoutError:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            self._log(f"the gateway answered nothing for {self._health_timeout:g} s and was killed")
            raise ConnectionError from None

    def _log(self, line: str) -> None:
        with suppress(OSError), self.log.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def last_log_line(self) -> str:
        """The last line that the gateway wrote. If it wrote a traceback, this is the exception."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError:
            return "it left no log"
        return next((line.strip() for line in reversed(lines) if line.strip()), "its log is empty")

    def drop_lease(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.close()

    def close(self) -> None:
        """Release the gateway; it ends when all clients have released it."""
        self.drop_lease()
        while self._starter_pipes:
            self._starter_pipes.pop().close()


def private_folder(run_id: str) -> Path:
    """The folder of the run's gateway, accessible to this user alone. Raises ModelError."""
    temporary = Path(tempfile.gettempdir())
    if len(str(temporary)) > LONGEST_FOLDER:
        temporary = Path("/tmp")
    parent = temporary / f"pytest-super-{os.getuid()}"
    folder = parent / run_id
    try:
        for path in (parent, folder):
            path.mkdir(mode=0o700, exist_ok=True)
            if path.stat().st_uid != os.getuid():
                raise ModelError(
                    f"{path} belongs to another user: set TMPDIR to a folder of your own", is_final=True
                )
    except OSError as error:
        raise ModelError(f"there is no place for the model gateway: {error}", is_final=True) from None
    return folder


def spawn(command: list[str], stdin: int, lock: int, log: Path) -> None:
    """Start a process that holds the lock as long as it lives, from its first moment.

    It gets its own session, so that Ctrl-C does not end it before the trials.
    """
    actions = [
        (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
        (os.POSIX_SPAWN_DUP2, lock, 3),
    ]
    os.posix_spawn(command[0], command, os.environ, file_actions=actions, setsid=True)
