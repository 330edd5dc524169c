"""Words that the Docker tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.kernel.sandbox import Stream
from pytest_super.tasks.sandbox_spec import SandboxSpec

if TYPE_CHECKING:
    from docker import APIClient

SPEC = SandboxSpec()
# Ends with its input, after it has said that it lives.
IDLE = "import sys; print('alive', flush=True); sys.stdin.read()"


class MakeSandbox(Protocol):
    """Makes a sandbox in which `code` runs in the bridge's place. `given` are fields of its settings."""

    def __call__(self, code: str, spec: SandboxSpec = ..., **given: Any) -> DockerSandbox: ...


class RunInside(Protocol):
    """Runs code in a sandbox of its own until it ends; gives its output, both streams of it."""

    def __call__(self, code: str, spec: SandboxSpec = ..., **given: Any) -> str: ...


def containers(engine: APIClient, token: str) -> list[dict[str, Any]]:
    """Ours whose name holds the token."""
    found: list[dict[str, Any]] = engine.containers(
        all=True, filters={"label": "pytest-super=1", "name": token}
    )
    return found


def inspect(engine: APIClient, sandbox: DockerSandbox) -> dict[str, Any]:
    (container,) = containers(engine, sandbox._token)
    found: dict[str, Any] = engine.inspect_container(container["Id"])
    return found


def read_all(stream: Stream) -> bytes:
    return b"".join(iter(lambda: stream.read(2**16), b""))


def end_of(sandbox: DockerSandbox) -> str:
    """Run it to its end; why it ended."""
    read_all(sandbox.open())
    return sandbox.cause_of_death()
