"""A container engine: where it is, whether it answers, and what its failures mean.

Everywhere, `engine` is the name of one, as --super-engine has it: a URL, or the name of a docker context. ""
is the engine of this machine in a run that names none.
"""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_super.errors import EngineError, InfrastructureError, UnsupportedError
from pytest_super.kernel.providers.docker.tunnel import tunnel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
HOW_TO_REACH = (
    "start it, or leave it out of --super-engine; to one on another machine, `ssh` must connect without a "
    "question (keys, known hosts) as a user who can use its socket"
)
SCHEMES = ("ssh://", "unix://", "tcp://")
gone: dict[str, EngineError] = {}
"""Engines of several that did not answer this process once: it does not wait for them again."""


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


def url_of(engine: str) -> str:
    """Raises EngineError for a name that is neither a URL nor that of a context."""
    if engine in ("", "default"):
        return engine_url()
    return engine if engine.startswith(SCHEMES) else str(context(engine).Host)


def context(name: str) -> Any:
    from docker.context import ContextAPI

    found = ContextAPI.get_context(name)
    if found is None:
        raise EngineError(
            # docker-py finds contexts only next to that file.
            f"--super-engine={name} is neither the name of a docker context (`docker context ls`, and a "
            f"config.json in its folder) nor a URL that begins with {', '.join(SCHEMES)}"
        )
    return found


def reach(url: str) -> str:
    """The URL for docker-py: that of a tunnel for ssh. A unix socket is connected to and closed.

    Unlike docker-py's errors, OSError names the problem.
    """
    if url.startswith("ssh://"):
        url = f"unix://{tunnel(url).socket()}"
    if url.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(HELLO_SECONDS)
            probe.connect(url.removeprefix("unix://"))
    return url


def no_engine(engine: str, error: Exception) -> EngineError:
    """Without the only engine every further trial would fail. One of several fails only its own."""
    reason = getattr(error, "strerror", None) or str(error)
    if engine:
        text = f"no container engine answers at {engine} ({reason}): {HOW_TO_REACH}"
    elif isinstance(error, PermissionError):
        text = f"no permission to use the container engine at {engine_url()}: {HOW_TO_PERMIT}"
    else:
        text = f"no container engine answers at {engine_url()} ({reason}): {HOW_TO_START}"
    return EngineError(text, is_final=not engine)


def connect(engine: str = "") -> APIClient:
    """The only client of this process for an engine. EngineError if it does not answer or is too old."""
    if engine in gone:
        raise gone[engine]
    return client_of(engine)


@cache
def client_of(engine: str) -> APIClient:
    url = url_of(engine)
    try:
        reached = reach(url)
    except OSError as error:
        raise no_engine(engine, error) from None
    client = make_client(engine, url, reached)
    client.timeout = int(CALL_SECONDS)
    if reached.startswith("unix://"):
        from pytest_super.kernel.providers.docker.unix_adapter import UnixAdapter

        client.close()
        client.mount("http+docker://", UnixAdapter(reached.removeprefix("unix://"), client.timeout))
        # It needs no proxy and no .netrc, and looking for them takes a quarter of a call.
        client.trust_env = False
    return client


def make_client(engine: str, url: str, reached: str) -> APIClient:
    import docker
    from docker.errors import DockerException
    from docker.utils import kwargs_from_env, version_lt

    # It also reads DOCKER_TLS_VERIFY and DOCKER_CERT_PATH.
    settings = kwargs_from_env() | {"base_url": reached}
    if engine and "://" not in engine:
        settings |= {"tls": tls} if (tls := context(engine).TLSConfig) else {}
    try:
        client = docker.APIClient(version="auto", timeout=int(HELLO_SECONDS), **settings)
    except (DockerException, ValueError) as error:
        # A tunnel is there before anybody knows whether an engine is at its other end.
        words = tunnel(url).words() if url.startswith("ssh://") else ""
        # Not final: it listens, and may only be slow.
        raise EngineError(str(no_engine(engine, ConnectionError(words) if words else error))) from error
    if version_lt(client.api_version, OLDEST_API):
        raise EngineError(
            f"the engine at {url} is too old (API {client.api_version}): Docker 19.03 or later is needed"
        )
    return client


@contextmanager
def engine_errors(
    doing: str, engine: str = "", *, image: str = "", is_shared: bool = False
) -> Iterator[None]:
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
        raise refusal(doing, engine, error) from error
    except (DockerException, HTTPError, OSError) as error:
        # The exceptions of `requests` are OSErrors.
        raise failure(doing, engine, error) from error


def failure(doing: str, engine: str, failed: Exception) -> EngineError:
    # When the engine is gone, docker-py's message does not say so.
    try:
        reach(url_of(engine))
    except OSError as error:
        return no_engine(engine, error)
    return EngineError(f"{f'the engine {engine}'.strip()} failed to {doing}: {failed}")


def command_line(engine: str) -> str:
    """The beginning of a command of docker's client for an engine."""
    option = "-H" if "://" in engine else "--context"
    return f"docker {option} {engine}" if engine else "docker"


def missing_image(image: str, *, is_final: bool) -> InfrastructureError:
    advice = (
        "build it with `pytest-super image build --profile super`"
        if image == SUPER_IMAGE
        else "build the kernel image with `pytest-super image build`, "
        "or get a task's or your own image with `docker pull` or `docker build`"
    )
    return InfrastructureError(f"the engine has no image {image!r}: {advice}", is_final=is_final)


def refusal(doing: str, engine: str, error: APIError) -> InfrastructureError:
    words = str(error.explanation or error)
    refused = f"{f'the engine {engine}'.strip()} refused to {doing}: {words}"
    if "executable file" in words and "not found" in words:
        return InfrastructureError("the image has no python3 in its PATH, which the kernel needs")
    if "Range of CPUs" in words:
        return UnsupportedError(words)
    if "mount config" in words:
        return InfrastructureError(refused)
    return EngineError(refused)


def inspect(image: str, engines: Sequence[str] = ()) -> dict[str, Any] | None:
    """What the engines know of an image; None if none has one of this name. Raises EngineError.

    Of several engines, what one knows that pulled the image: the others do not know its digest. If none of
    them has it, what this machine's engine knows, from which it is sent to them.
    """
    found: list[dict[str, Any]] = []
    errors = []
    for engine in (*engines, ""):
        if found and not engine:
            break
        try:
            found += filter(None, [inspect_on(engine, image)])
        except EngineError as error:
            errors.append(error)
    if len(errors) > len(engines):
        raise errors[0]
    return min(found, key=lambda one: not one.get("RepoDigests"), default=None)


def inspect_on(engine: str, image: str) -> dict[str, Any] | None:
    """What one engine knows of an image; None if it has none of this name. Raises EngineError."""
    from docker.errors import ImageNotFound

    with engine_errors("look for an image", engine), suppress(ImageNotFound):
        found: dict[str, Any] = connect(engine).inspect_image(image)  # type: ignore[no-untyped-call]
        return found
    return None
