"""A client of package indexes: the HTML of the simple API (PEP 503), by HTTP or in a folder.

Not its JSON (PEP 691): every index has HTML, a folder has nothing else, and both say the same of a file.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit
from urllib.request import url2pathname

from pytest_super.errors import InfrastructureError
from pytest_super.redaction import redacted

if TYPE_CHECKING:
    import requests

PAGE_TYPES = "application/vnd.pypi.simple.v1+html, text/html;q=0.1"
CHUNK = 256 * 1024
RETRIES = 2
DEFAULT_INDEX = "https://pypi.org/simple"
TIMEOUT = 60.0

# Later sections override earlier ones, as in pip.
SECTIONS = ("global", "install", "download")

_LINE = re.compile(r"(\w+)\.([\w-]+)=(.+)")


@dataclass(frozen=True, kw_only=True)
class PipSettings:
    indexes: list[str]
    """URLs, which can contain credentials."""
    cert: str | None
    """A CA bundle."""
    proxy: str | None
    trusted_hosts: list[str]
    """Hosts, or host:port, whose certificates are not checked."""
    timeout: float


def read_pip_settings() -> PipSettings:
    """The settings of pip's files and environment variables, or only of the variables if pip is missing."""
    values = _config_list()
    for name, value in os.environ.items():
        if name.startswith("PIP_") and value:
            values[name.removeprefix("PIP_").lower().replace("_", "-")] = value
    urls = [values.get("index-url") or DEFAULT_INDEX, *values.get("extra-index-url", "").split()]
    timeout = values.get("timeout") or values.get("default-timeout") or ""
    return PipSettings(
        indexes=[url.rstrip("/") for url in urls],
        cert=values.get("cert") or None,
        proxy=values.get("proxy") or None,
        trusted_hosts=values.get("trusted-host", "").split(),
        timeout=float(timeout) if timeout.isdecimal() else TIMEOUT,
    )


def _config_list() -> dict[str, str]:
    """The values of pip's files; {} if pip is missing."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    lines = list(filter(None, map(_LINE.fullmatch, done.stdout.splitlines())))
    # pip prints each value as a Python literal.
    return {line[2]: str(ast.literal_eval(line[3])) for name in SECTIONS for line in lines if line[1] == name}


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexFile:
    name: str
    url: str
    sha256: str | None = None
    """The digest that the index declares."""
    yanked: bool = False
    """Withdrawn by its author (PEP 592), so only for users who pin it."""


class Index:
    """A client of pip's configured indexes, and a context manager. Its methods raise InfrastructureError."""

    def __init__(self) -> None:
        self._settings = settings = read_pip_settings()
        self.urls = settings.indexes
        self._session = _new_session(settings.proxy)
        netlocs = [urlsplit(url).netloc for url in settings.indexes]
        # Links on an index's pages have no credentials, and files on other hosts must not get any.
        self._netlocs = {netloc.rpartition("@")[2]: netloc for netloc in netlocs if "@" in netloc}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def files(self, index: str, project: str) -> list[IndexFile]:
        """The project's files on one of the indexes; [] if it does not have the project."""
        if index.startswith("file:"):
            page = _local(index) / project / "index.html"
            with _clear_errors(index):
                return parse_page(page.read_text("utf-8"), page.as_uri()) if page.is_file() else []
        with self._get(f"{index}/{project}/", accept=PAGE_TYPES) as response:
            if response.status_code == 404:
                return []
            response.raise_for_status()
            return parse_page(response.text, response.url)

    def read(self, url: str) -> Iterator[bytes]:
        """The content of one of the index's files, in pieces."""
        if url.startswith("file:"):
            with _clear_errors(url):
                yield _local(url).read_bytes()
            return
        with self._get(url, accept="*/*") as response:
            response.raise_for_status()
            yield from response.iter_content(CHUNK)

    @contextmanager
    def _get(self, url: str, *, accept: str) -> Iterator[requests.Response]:
        import requests

        with _clear_errors(url), warnings.catch_warnings():
            # It is printed only for hosts that the user configured as trusted.
            warnings.filterwarnings("ignore", message="Unverified HTTPS request")
            parts = urlsplit(url)
            hosts = {parts.hostname, f"{parts.hostname}:{parts.port}"}
            netloc = self._netlocs.get(parts.netloc, parts.netloc)
            response = self._session.get(
                urlunsplit(parts._replace(netloc=netloc)),
                # As in pip: some servers declare a `.tar.gz` as compressed in transit; it would be unpacked.
                headers={"Accept": accept, "Accept-Encoding": "identity"},
                stream=True,
                timeout=self._settings.timeout,
                # Not set on the session: there, an environment variable of requests would override it.
                verify=hosts.isdisjoint(self._settings.trusted_hosts) and (self._settings.cert or True),
            )
            assert isinstance(response, requests.Response)
            with response:
                yield response


def parse_page(text: str, base: str) -> list[IndexFile]:
    """The files that the links of a page name."""
    parser = _LinkParser(base)
    parser.feed(text)
    return parser.files


class _LinkParser(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__()
        self.files: list[IndexFile] = []
        self._base = base

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        target = dict(attrs).get("href")
        if tag == "base" and target:
            self._base = urljoin(self._base, target)
        elif tag == "a" and target:
            url, fragment = urldefrag(urljoin(self._base, target))
            digest = re.search(r"(?:^|&)sha256=([0-9a-f]{64})", fragment)
            file = IndexFile(
                # Only the last part, because the name becomes part of a path on this machine.
                name=posixpath.basename(unquote(urlsplit(url).path)),
                url=url,
                sha256=digest[1] if digest else None,
                yanked="data-yanked" in dict(attrs),
            )
            self.files.append(file)


def _new_session(proxy: str | None) -> requests.Session:
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.util import Retry

    session = requests.Session()
    busy = (429, 502, 503, 504)
    # The last answer is returned and not raised, because its status says more than "too many retries".
    retry = Retry(total=RETRIES, backoff_factor=0.2, status_forcelist=busy, raise_on_status=False)
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(max_retries=retry))
    if proxy:
        session.proxies = {"http": proxy, "https": proxy}
    return session


@contextmanager
def _clear_errors(url: str) -> Iterator[None]:
    import requests

    try:
        yield
    except (requests.RequestException, ValueError, OSError) as error:
        raise InfrastructureError(
            f"the package index cannot be read at {redacted(url)}: {redacted(str(error))}; "
            "check the network, and the index and its credentials in pip's configuration"
        ) from None


def _local(url: str) -> Path:
    return Path(url2pathname(urlsplit(url).path))
