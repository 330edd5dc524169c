"""The container engine: where it is, whether it answers, what its failures mean, and files for it."""

from __future__ import annotations

import io
import os
import socket
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_super.errors import EngineError, InfrastructureError, UnsupportedError

if TYPE_CHECKING:
    from docker import APIClient
    from docker.errors import APIError

SUPER_IMAGE = "pytest-super-kernel:super"
"""The image of SUPER's tasks. Imported task files name it, so its name never changes."""
OLDEST_API = "1.40"
"""Docker 19.03; podman 3 and later report 1.40 or 1.41."""
HELLO_SECONDS = 5.0
"""How long an engine can take to report its version."""
CALL_SECONDS = 120.0
"""How long any other call can take: several runs can share an engine and its cores."""

HOW_TO_START = (
    "start one (Docker Desktop, `systemctl start docker`, or `dockerd` as root; podman: "
    "`systemctl --user start podman.socket`), set DOCKER_HOST to where it listens, "
    "or run without containers with --super-sandbox=local"
)
HOW_TO_PERMIT = (
    "join the group that owns it (`sudo usermod -aG docker $USER`, then log in again), use a rootless "
    "engine, or run without containers with --super-sandbox=local"
)
NOT_OVER_SSH = (
    "containers start on engines of this machine only: run whole trials on the other one by "
    "--super-machines=N*ssh://HOST"
)


def socket_paths() -> list[str]:
    """Where engines listen: Docker, rootless Docker, podman, and Docker Desktop on macOS."""
    personal = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    desktop = os.path.expanduser("~/.docker/run/docker.sock")
    return ["/var/run/docker.sock", f"{personal}/docker.sock", f"{personal}/podman/podman.sock", desktop]


def engine_url() -> str:
    """DOCKER_HOST, else the first socket that exists, else the socket of Docker."""
    if given := os.environ.get("DOCKER_HOST"):
        return given
    paths = socket_paths()
    return "unix://" + next((path for path in paths if os.path.exists(path)), paths[0])


def reach(url: str) -> None:
    """Connect to a unix socket and close it: unlike docker-py's errors, OSError names the problem."""
    if url.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(HELLO_SECONDS)
            probe.connect(url.removeprefix("unix://"))


def no_engine(error: Exception) -> EngineError:
    """A final error: without the engine every further trial would fail."""
    if isinstance(error, PermissionError):
        text = f"no permission to use the container engine at {engine_url()}: {HOW_TO_PERMIT}"
    else:
        reason = getattr(error, "strerror", None) or str(error)
        text = f"no container engine answers at {engine_url()} ({reason}): {HOW_TO_START}"
    return EngineError(text, is_final=True)


@cache
def connect() -> APIClient:
    """The only client of this process. Raises EngineError if the engine does not answer or is too old."""
    url = engine_url()
    if url.startswith("ssh://"):
        raise EngineError(f"DOCKER_HOST={url}: {NOT_OVER_SSH}", is_final=True)
    try:
        reach(url)
    except OSError as error:
        raise no_engine(error) from None
    client = make_client(url)
    client.timeout = int(CALL_SECONDS)
    if url.startswith("unix://"):
        client.close()
        client.mount("http+docker://", unix_adapter(url.removeprefix("unix://"), client.timeout))
        # It needs no proxy and no .netrc, and looking for them takes a quarter of a call.
        client.trust_env = False
    return client


def unix_adapter(path: str, timeout: int) -> Any:
    """docker-py's adapter for unix sockets, which here closes a socket that cannot be connected."""
    from docker.transport import UnixHTTPAdapter
    from docker.transport.unixconn import UnixHTTPConnection

    class Connection(UnixHTTPConnection):
        def connect(self) -> None:
            # Before it is connected: if that fails, urllib3 closes what is here.
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(self.timeout)
            self.sock.connect(self.unix_socket)

    class Adapter(UnixHTTPAdapter):
        def get_connection(self, url: Any, proxies: Any = None) -> Any:
            pool: Any = super().get_connection(url, proxies)
            pool._new_conn = lambda: Connection(url, self.socket_path, self.timeout)
            return pool

    return Adapter(path, timeout)


def make_client(url: str) -> APIClient:
    import docker
    from docker.errors import DockerException
    from docker.utils import kwargs_from_env, version_lt

    # It also reads DOCKER_TLS_VERIFY and DOCKER_CERT_PATH.
    settings = kwargs_from_env() | {"base_url": url}
    try:
        client = docker.APIClient(version="auto", timeout=int(HELLO_SECONDS), **settings)
    except (DockerException, ValueError) as error:
        # Not final: it listens, and may only be slow.
        raise EngineError(str(no_engine(error))) from error
    if version_lt(client.api_version, OLDEST_API):
        raise EngineError(
            f"the engine at {url} is too old (API {client.api_version}): Docker 19.03 or later is needed"
        )
    return client


@contextmanager
def engine_errors(doing: str, *, image: str = "", is_shared: bool = False) -> Iterator[None]:
    """Turn exceptions of docker-py and its transport into EngineError, or InfrastructureError for an image.

    `doing` completes "the engine failed to ...". `is_shared` says that other trials need the image too.
    """
    from docker.errors import APIError, DockerException, ImageNotFound
    from urllib3.exceptions import HTTPError

    try:
        yield
    except ImageNotFound as error:
        raise missing_image(image or str(error.explanation), is_final=is_shared) from error
    except APIError as error:
        raise refusal(doing, error) from error
    except (DockerException, HTTPError, OSError) as error:
        # The exceptions of `requests` are OSErrors.
        raise failure(doing, error) from error


def failure(doing: str, failed: Exception) -> EngineError:
    # When the engine is gone, docker-py's message does not say so.
    try:
        reach(engine_url())
    except OSError as error:
        return no_engine(error)
    return EngineError(f"the engine failed to {doing}: {failed}")


def missing_image(image: str, *, is_final: bool) -> InfrastructureError:
    advice = (
        "build it with `pytest-super image build --profile super`"
        if image == SUPER_IMAGE
        else "build the kernel image with `pytest-super image build`, "
        "or get a task's or your own image with `docker pull` or `docker build`"
    )
    return InfrastructureError(f"the engine has no image {image!r}: {advice}", is_final=is_final)


def refusal(doing: str, error: APIError) -> InfrastructureError:
    words = str(error.explanation or error)
    refused = f"the engine refused to {doing}: {words}"
    if "executable file" in words and "not found" in words:
        return InfrastructureError("the image has no python3 in its PATH, which the kernel needs")
    if "Range of CPUs" in words:
        return UnsupportedError(words)
    if "mount config" in words:
        return InfrastructureError(refused)
    return EngineError(refused)


def inspect(image: str) -> dict[str, Any] | None:
    """What the engine knows of an image; None if it has none of this name. Raises EngineError."""
    from docker.errors import ImageNotFound

    with engine_errors("look for an image"), suppress(ImageNotFound):
        found: dict[str, Any] = connect().inspect_image(image)  # type: ignore[no-untyped-call]
        return found
    return None


def has_gpus() -> bool:
    """Whether the engine has the runtime for GPUs in containers. Raises EngineError."""
    with engine_errors("say what it has"):
        return "nvidia" in (connect().info().get("Runtimes") or {})


def tar_of(files: dict[str, bytes]) -> bytes:
    """A tar archive of `files` (path: content), readable by everybody inside."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def read_file(path: Path) -> bytes:
    """Raises InfrastructureError for a file that cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InfrastructureError(f"{path}: cannot be read: {error.strerror}") from None
