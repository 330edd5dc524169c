"""Serves the pages of one or two runs on the loopback interface, to browsers of this machine only."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from pytest_super.digests import digest
from pytest_super.report.notebook import NOTEBOOK
from pytest_super.report.page.conversation import conversation_of
from pytest_super.report.page.pair import pair_of
from pytest_super.report.page.render import policy, run_page, runs_page, trial_page
from pytest_super.report.page.stored import ShownRun, ShownTrial, open_own, read_run
from pytest_super.report.page.trial import TRAJECTORY, detail_of
from pytest_super.store.activity import FILE
from pytest_super.store.answers import FILE as ANSWERS
from pytest_super.store.verdict import VERDICT
from pytest_super.store.why import FILE as WHY

ADDRESS = "127.0.0.1"
MOST_OF_TRIAL = MOST_OF_CALLS = 2_000_000
"""Characters of one trial, and of its conversation with the model."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"{policy(is_served=True)}; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class RunReader:
    """One run, read again only when its files have changed. Used by several threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._read: tuple[str, ShownRun] | None = None

    @property
    def version(self) -> str:
        """Another one whenever the page of the run has to change."""
        paths = [self.folder / name for name in ("results.jsonl", "trouble.jsonl", VERDICT, "trials")]
        return " ".join(map(stamp, [*paths, *sorted((self.folder / "trials").glob(f"*/*/{FILE}"))]))

    @property
    def run(self) -> ShownRun:
        with self._lock:
            # Before reading, so that a change in between is seen by the next look.
            version = self.version
            if self._read is None or self._read[0] != version:
                self._read = version, read_run(self.folder)
            return self._read[1]


class Pages:
    """The pages by their addresses: one run, or two next to each other.

    /                            the run, or both
    /0/, /1/                     one of them
    /0/trials/mean/1.0           a trial, and with /trajectory.jsonl its steps as they are stored
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self.readers = [RunReader(folder) for folder in folders]

    def page(self, path: str) -> tuple[str, Callable[[], str]] | None:
        """The version of the page, and a function that makes it; None if no page has this address."""
        first, _, rest = path.removeprefix("/").partition("/")
        if path == "/" and len(self.readers) == 2:
            version = " ".join(one.version for one in self.readers)
            return version, partial(self.both, version)
        if path == "/" or (first in map(str, range(len(self.readers))) and not rest):
            number = int(first or 0)
            version = self.readers[number].version
            return version, partial(self.one, number, version)
        if first in map(str, range(len(self.readers))):
            run = self.readers[int(first)].run
            if found := run.trial(rest):
                version = self.version_of(int(first), found)
                return version, partial(self.trial, int(first), run, found, version)
        return None

    def version_of(self, number: int, trial: ShownTrial) -> str:
        folder = self.readers[number].folder / trial.folder
        names = ("result.json", TRAJECTORY, NOTEBOOK, ANSWERS, WHY, FILE)
        return " ".join(stamp(folder / name) for name in names)

    def trajectory(self, path: str) -> tuple[Path, str] | None:
        """The folder of the run, and the file of a known trial's steps relative to it."""
        if not path.endswith(TRAJECTORY):
            return None
        for number, reader in enumerate(self.readers):
            for one in reader.run.trials:
                if path == f"/{number}/{one.folder}/{TRAJECTORY}":
                    return reader.folder, f"{one.folder}/{TRAJECTORY}"
        return None

    def one(self, number: int, version: str) -> str:
        run = self.readers[number].run
        links = [address(number, one) for one in run.trials]
        return run_page(run, links, version=tag(version), up="/" if len(self.readers) == 2 else "")

    def trial(self, number: int, run: ShownRun, found: ShownTrial, version: str) -> str:
        around = [(address(number, one), one.result.name) if one else None for one in run.neighbours(found)]
        return trial_page(
            run,
            detail_of(found, run.folder, MOST_OF_TRIAL),
            around=around,
            conversation=conversation_of(run.folder, found, MOST_OF_CALLS),
            version=tag(version),
            up=f"/{number}/",
            source=f"{address(number, found)}/{TRAJECTORY}",
        )

    def both(self, version: str) -> str:
        runs = [one.run for one in self.readers]
        links = [first_trials(number, run) for number, run in enumerate(runs)]
        return runs_page(runs, pair_of(*runs), links, version=tag(version))


def stamp(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return "-"
    return f"{found.st_mtime_ns}.{found.st_size}"


def address(number: int, trial: ShownTrial) -> str:
    return f"/{number}/{quote(trial.folder)}"


def first_trials(number: int, run: ShownRun) -> dict[str, str]:
    """The address of the first epoch of each task."""
    last_first = sorted(run.trials, key=lambda one: -one.result.epoch)
    return {one.result.id: address(number, one) for one in last_first}


def tag(version: str) -> str:
    """The version as an entity tag of HTTP."""
    return f'"{digest(version)[:32]}"'


class Handler(BaseHTTPRequestHandler):
    """Answers GET requests that name this server as their host."""

    server: PageServer
    server_version, sys_version = "pytest-super", ""
    # A client that stops in the middle of its request does not keep a thread.
    timeout = 30

    def do_GET(self) -> None:
        # Another site can give its name our address (DNS rebinding); its requests have its name.
        if self.headers.get("Host") not in self.server.hosts:
            self.refuse(HTTPStatus.FORBIDDEN)
            return
        try:
            path = unquote(urlsplit(self.path).path)
        except ValueError:
            self.refuse(HTTPStatus.BAD_REQUEST)
            return
        if found_file := self.server.pages.trajectory(path):
            self.send_file(*found_file)
        elif found := self.server.pages.page(path):
            self.send_page(*found)
        else:
            self.refuse(HTTPStatus.NOT_FOUND)

    def send_page(self, version: str, make: Callable[[], str]) -> None:
        if self.headers.get("If-None-Match") == tag(version):
            self.refuse(HTTPStatus.NOT_MODIFIED)
            return
        body = make().encode()
        self.begin(HTTPStatus.OK, "text/html; charset=utf-8", len(body))
        self.wfile.write(body)

    def send_file(self, run: Path, name: str) -> None:
        """Send it as text, whatever it contains."""
        try:
            file = open_own(run, name)
        except OSError:
            self.refuse(HTTPStatus.NOT_FOUND)
            return
        with file:
            self.begin(HTTPStatus.OK, "text/plain; charset=utf-8")
            shutil.copyfileobj(file, self.wfile)

    def refuse(self, status: HTTPStatus) -> None:
        body = b"" if status == HTTPStatus.NOT_MODIFIED else f"{status.phrase}\n".encode()
        self.begin(status, "text/plain; charset=utf-8", len(body))
        self.wfile.write(body)

    def begin(self, status: HTTPStatus, kind: str, length: int | None = None) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind}.items():
            self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def send_error(self, code: int, *_: str | None) -> None:
        """Called by the base class, also for other methods than GET."""
        self.refuse(HTTPStatus(code))

    def handle(self) -> None:
        # The browser has left.
        with suppress(ConnectionError, TimeoutError):
            super().handle()

    def log_message(self, *_: object) -> None:
        """Nothing: a request every two seconds is not worth a line."""


class PageServer(ThreadingHTTPServer):
    """Serves on a free port of the loopback interface."""

    daemon_threads = True

    def __init__(self, folders: Sequence[Path], port: int = 0) -> None:
        """Raises OSError if the port is taken."""
        super().__init__((ADDRESS, port), Handler)
        self.pages = Pages(folders)
        # Browsers send `Host` without the port if that is HTTP's own.
        names = {ADDRESS, "localhost"}
        own = names if self.server_port == HTTP_PORT else set()
        self.hosts = {f"{name}:{self.server_port}" for name in names} | own

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/"
