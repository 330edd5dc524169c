"""The gateway's process as its clients see it: started by the first that needs it, again when it has died."""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_super.model.completion import ModelError
from pytest_super.model.liveness import LONGEST_SILENCE, LOOK_EVERY, Watch, connected
from pytest_super.store.atomic_write import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_super.model.liveness import UnixConnection
    from pytest_super.model.settings import ModelSettings

READY_SECONDS = 60.0
MAX_STARTS = 3
# A socket's path has at most 107 bytes.
LONGEST_FOLDER = 50
# The header of an answer that says, in JSON, what it used.
FACTS = "X-Pytest-Super"
BOOKS = "/super/books"


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """What the gateway has answered."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes


class Gateway:
    """One for each process that asks a model; all of a machine and run speak to the same server.

    `start` returns at once, so that the server is there when the first container is.
    """

    def __init__(
        self,
        run_id: str,
        settings: ModelSettings,
        *,
        look_every: float = LOOK_EVERY,
        longest_silence: float = LONGEST_SILENCE,
    ) -> None:
        """A server that is silent for `longest_silence` seconds is ended, see Watch."""
        self.settings = settings
        self.run_id = run_id
        self.folder = private_folder(run_id)
        self._watch = Watch(self.socket, self.note, look_every=look_every, longest_silence=longest_silence)
        self._starts = 0
        self._lease: UnixConnection | None = None
        self._leasing = threading.Lock()
        self._held: list[int] = []
        """Ends of pipes which tell a gateway that its starter lives."""

    @property
    def socket(self) -> Path:
        return self.folder / "socket"

    def start(self) -> None:
        """Start the server unless one is there. Raises ModelError when it keeps dying."""
        # A server takes its folder away when it ends.
        private_folder(self.run_id)
        lock = os.open(self.folder / "alive", os.O_RDWR | os.O_CREAT, 0o600)
        reader, writer = os.pipe()
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._starts == MAX_STARTS:
                raise ModelError(f"the model gateway does not start: {self.last_words()}", is_final=True)
            self._starts += 1
            self.write_settings()
            # -P: a file of the project's may have the name of a module.
            command = [sys.executable, "-P", "-m", "pytest_super.model.gateway", str(self.folder)]
            spawn(command, reader, lock, self.log)
            self._held.append(writer)
        except BlockingIOError:
            os.close(writer)
        except BaseException:
            os.close(writer)
            raise
        finally:
            os.close(lock)
            os.close(reader)

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def note(self, line: str) -> None:
        """Add to what the server wrote."""
        with suppress(OSError), self.log.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def write_settings(self) -> None:
        """Atomically: another client may start the server at the same moment."""
        write_atomically(self.folder / "settings.json", json.dumps(self.settings.to_data()))

    def open_trial(self, trial: dict[str, Any]) -> str:
        """The token of a trial with these limits. Raises ModelError."""
        response = self.send("POST", "/super/trials", json.dumps(trial).encode(), token="")
        token: str = json.loads(response.body)["token"]
        return token

    def send(
        self,
        method: str,
        path: str,
        data: bytes,
        token: str,
        timeout: float | None = None,
        opened: Callable[[UnixConnection], None] = lambda _: None,
    ) -> Response:
        """The server's answer; one that dies or stays silent is started again, and asked again.

        What `opened` raises, called before each try, ends it. Raises ModelError, and TimeoutError when
        `timeout` seconds have passed.
        """
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        for _ in range(MAX_STARTS):
            connection = self.connect(timeout)
            try:
                opened(connection)
                with self._watch.over(connection):
                    return asked(connection, method, path, data, headers)
            except TimeoutError:
                raise
            except (OSError, http.client.HTTPException):
                self.drop_lease()
            finally:
                connection.close()
        raise ModelError(f"the model gateway died {MAX_STARTS} times on one call: {self.last_words()}")

    def connect(self, timeout: float | None) -> UnixConnection:
        """A connection to the server, once it is up. Raises ModelError."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                with self._leasing:
                    if self._lease is None:
                        self._lease = connected(self.socket)
                connection = connected(self.socket, timeout)
            except OSError:
                self.drop_lease()
                if time.monotonic() > deadline:
                    raise ModelError(f"the model gateway does not answer: {self.last_words()}") from None
                self.start()
                time.sleep(0.05)
            else:
                self._starts = 0
                return connection

    def last_words(self) -> str:
        """The last line that the server wrote, of a traceback the one that says what it was."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError:
            return "it left no log"
        return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")

    def drop_lease(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.close()

    def close(self) -> None:
        """Let the server go; it ends when all have."""
        self._watch.close()
        self.drop_lease()
        while self._held:
            os.close(self._held.pop())


def asked(
    connection: UnixConnection, method: str, path: str, data: bytes, headers: dict[str, str]
) -> Response:
    connection.request(method, path, data, headers)
    response = connection.getresponse()
    return Response(status=response.status, headers=response.headers, body=response.read())


def private_folder(run_id: str) -> Path:
    """Where the run's gateway is found, for this user alone. Raises ModelError."""
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
                    f"{path} belongs to somebody else: set TMPDIR to a folder of yours", is_final=True
                )
    except OSError as error:
        raise ModelError(f"there is no place for the model gateway: {error}", is_final=True) from None
    return folder


def spawn(command: list[str], stdin: int, lock: int, log: Path) -> None:
    """Start a process that holds the lock as long as it lives, also while it starts.

    It has a session of its own, so that Ctrl-C ends the trials first.
    """
    actions = [
        (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
        (os.POSIX_SPAWN_DUP2, lock, 3),
    ]
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    os.posix_spawn(command[0], command, environment, file_actions=actions, setsid=True)
