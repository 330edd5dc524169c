"""The gateway's process as its clients see it: the first starts it, and any client restarts it.

What they say to each other goes over the gateway's socket: one request a connection.

A request is two lines and a body: the token of the run, a JSON object with the `size` of the body, and the
body, which is a program's, unread. The gateway reads no more of a client that does not know the token.

The answer is lines of JSON objects. Any line is a sign of life:

    {"waits": …}   what the trial's oldest call waits for; "" if for nothing but an answer
    {"events": …}  server-sent events of a stream, whole ones
    {"last": …}    the `error`, or what the request asks for
"""

import fcntl
import json
import os
import signal
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from time import monotonic, sleep
from typing import Any, BinaryIO

from pytest_super.model.completion import ModelError
from pytest_super.model.settings import ModelSettings
from pytest_super.store.json_lines import to_line

Line = dict[str, Any]
Left = Callable[[], float]
"""Returns the seconds left, which can rise, and raises an exception when there are none."""
Hear = Callable[[Line], None]
Opened = Callable[[Callable[[], None]], None]

WAITS, EVENTS, LAST = "waits", "events", "last"
PIECE = 256 * 2**10
READY_SECONDS = 60.0
MAX_STARTS = 3
# Much longer than one request keeps the gateway's event loop busy.
LONGEST_SILENCE = 60.0
# Of that silence: often enough for the live display of the run.
SIGNS_OF_LIFE = 20
# A socket's path has at most 107 bytes.
LONGEST_FOLDER = 50


class Connection:
    """A client's connection."""

    def __init__(self, path: Path, timeout: float) -> None:
        """Raises OSError."""
        # The beginning of a line.
        self._rest = bytearray()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(timeout)
            self._socket.connect(str(path))
        except OSError:
            self.close()
            raise

    @property
    def process(self) -> int:
        """The id of the process that listens, even if another does so at the same path by now."""
        if sys.platform == "linux":
            given = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            return int(struct.unpack("3i", given)[0])
        else:
            # macOS: SOL_LOCAL and LOCAL_PEERPID, which Python does not name.
            return self._socket.getsockopt(0, 2)

    def send(self, token: str, request: Line, body: bytes) -> None:
        """Raises OSError."""
        head = f"{token}\n{to_line({**request, 'size': len(body)})}"
        self._socket.sendall(head.encode() + body)

    def read(self, seconds: float) -> list[Line]:
        """The lines that end in the next piece. Raises TimeoutError if nothing comes, and ConnectionError."""
        self._socket.settimeout(max(0.001, seconds))
        piece = self._socket.recv(PIECE)
        if not piece:
            raise ConnectionError
        self._rest += piece
        if b"\n" not in piece:
            return []
        *lines, self._rest = self._rest.split(b"\n")
        return [json.loads(line) for line in lines]

    def break_off(self) -> None:
        """End the request. Called in a thread other than the one that waits for the answer."""
        # Not `close`, which does not wake a thread that is waiting.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()


class Gateway:
    """The connection of one process to the gateway of its run, which all processes in one place share."""

    def __init__(
        self, run_id: str, settings: ModelSettings, token: str, *, longest_silence: float = LONGEST_SILENCE
    ) -> None:
        """`token` is known to all clients; a gateway silent for `longest_silence` seconds is replaced."""
        self.settings = settings
        self.run_id = run_id
        self._token = token
        self.folder = private_folder(run_id)
        self.socket, self.log = self.folder / "socket", self.folder / "log"
        self._longest_silence = longest_silence
        self._starts = 0
        self._lock = threading.Lock()
        self._lease: Connection | None = None
        """An open connection, which keeps the gateway from ending between calls."""
        self._downtime = 0.0
        self._down_since: float | None = None
        self._is_closed = False
        self._starter_pipes: list[BinaryIO] = []
        """Our ends of pipes to the gateways, which are closed when this process ends."""

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
        """Start a process that holds the lock as long as it lives. Ctrl-C does not end its session."""
        reader, writer = os.pipe()
        pipe = open(writer, "wb", 0)  # noqa: SIM115
        self._starter_pipes.append(pipe)
        actions = [
            (os.POSIX_SPAWN_DUP2, reader, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(self.log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
            (os.POSIX_SPAWN_DUP2, lock, 3),
        ]
        # -P, because a file of the user's project can have the name of a module.
        command = [sys.executable, "-P", "-m", "pytest_super.model.gateway", str(self.folder)]
        try:
            os.posix_spawn(command[0], command, os.environ, file_actions=actions, setsid=True)
        finally:
            os.close(reader)
        # Not in a file, an argument or a variable, which code in a local sandbox can read.
        given = {"token": self._token, "settings": asdict(self.settings)}
        # If the gateway has died already, `connect` starts another.
        with suppress(BrokenPipeError):
            pipe.write(to_line(given).encode())

    @property
    def downtime(self) -> float:
        """Seconds for which gateways started, or were replaced, while this process waited for them."""
        with self._lock:
            return self._downtime + (0.0 if self._down_since is None else monotonic() - self._down_since)

    def ask(self, request: Line, body: bytes, left: Left, hear: Hear, opened: Opened) -> Line:
        """What the gateway's last line says; `hear` gets the lines before it.

        A gateway that died or hangs is replaced, and asked again unless it has begun a stream. An exception
        of `left` ends the request, and one of `opened`, which gets before each try what breaks it off. Raises
        ModelError.
        """
        request = {**request, "sign_of_life": self._longest_silence / SIGNS_OF_LIFE}
        is_stream = False
        for _ in range(MAX_STARTS):
            with closing(self.connect()) as connection:
                opened(connection.break_off)
                # A start of the gateway takes seconds, after which the call can be too late.
                left()
                try:
                    connection.send(self._token, request, body)
                    while True:
                        for line in self._next_lines(connection, left):
                            if LAST in line:
                                answer: Line = line[LAST]
                                return answer
                            is_stream |= EVENTS in line
                            hear(line)
                except TimeoutError:
                    self._kill(connection.process)
                except OSError:
                    self.drop_lease()
            if is_stream:
                # What was relayed cannot be asked for again.
                raise ModelError("the model gateway died while it answered")
        raise ModelError(f"the model gateway died {MAX_STARTS} times on one call: {self.last_log_line()}")

    def _next_lines(self, connection: Connection, left: Left) -> list[Line]:
        """Raises TimeoutError if the gateway hangs, and ConnectionError if it died."""
        seconds = left()
        try:
            return connection.read(min(seconds, self._longest_silence))
        except TimeoutError:
            if seconds >= self._longest_silence:
                raise
            return []

    def _kill(self, process: int) -> None:
        """Kill a gateway that hangs."""
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        with suppress(OSError), self.log.open("a", encoding="utf-8") as file:
            file.write(f"the gateway answered nothing for {self._longest_silence:g} s and was killed\n")
        self.drop_lease()

    def connect(self) -> Connection:
        """A connection to the gateway, once it is up. Raises ModelError."""
        deadline = monotonic() + READY_SECONDS
        while True:
            try:
                return self._connected()
            except OSError:
                self.drop_lease()
                if monotonic() > deadline:
                    raise ModelError(f"the model gateway does not answer: {self.last_log_line()}") from None
                self.start()
                sleep(0.05)

    def _connected(self) -> Connection:
        """Raises OSError, and ModelError after `close`: a call of a worker elsewhere can outlive the run."""
        with self._lock:
            if self._is_closed:
                raise ModelError("the run has ended", is_final=True)
            now = monotonic()
            try:
                self._lease = self._lease or Connection(self.socket, self._longest_silence)
                connection = Connection(self.socket, self._longest_silence)
            except OSError:
                self._down_since = self._down_since or now
                raise
            # A gateway that answered was able to start, whatever happened to it later.
            self._starts = 0
            if self._down_since is not None:
                self._downtime += now - self._down_since
                self._down_since = None
            return connection

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
        with self._lock:
            self._is_closed = True
        self.drop_lease()
        while self._starter_pipes:
            self._starter_pipes.pop().close()


def temporary_folder() -> Path:
    temporary = Path(tempfile.gettempdir())
    return temporary if len(str(temporary)) <= LONGEST_FOLDER else Path("/tmp")


def private_folder(run_id: str) -> Path:
    """The folder of the run's gateway, accessible to this user alone. Raises ModelError."""
    parent = temporary_folder() / f"pytest-super-{os.getuid()}"
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
