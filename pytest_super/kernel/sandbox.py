"""Where a kernel lives: what a provider gives, and nothing more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_super.tasks.task import SandboxSpec


class Stream(Protocol):
    """One duplex byte stream, to the standard input and from the standard output of the bridge."""

    def read(self, size: int) -> bytes:
        """At least one and at most `size` bytes; b"" at the end. Called from one thread only."""

    def write(self, data: bytes) -> None:
        """All of `data`, or OSError when the other side is gone."""

    def close(self) -> None:
        """End both directions, which ends the bridge; a blocked `read` returns b"". Idempotent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """What a provider enforces or gives; a task that requires more is refused before it starts."""

    isolation: bool = False
    """Code inside cannot read or change what is outside."""
    image: bool = False
    cpus: bool = False
    memory: bool = False
    disk: bool = False
    pids: bool = False
    no_network: bool = False
    gpus: bool = False
    snapshots: bool = False
    """It is a SnapshotSandbox."""


class Sandbox(Protocol):
    """A place for one kernel, made for one trial and thrown away with it."""

    capabilities: Capabilities
    workdir: str
    """The absolute path, inside, in which cells start."""

    def open(self) -> Stream:
        """Start the bridge inside and give its stream.

        Raises EngineError when the engine does not answer or refuses, InfrastructureError for
        what a person must mend (an image that is missing).
        """

    def cause_of_death(self) -> str:
        """Why the stream ended, as a person would say it: `out of memory`, `killed (exit code 137)`.

        Raises EngineError when the engine does not answer: then it is the engine that failed, not the agent.
        """

    def keep(self) -> str:
        """Save the files for a person to look into; gives what to type to enter them. Before `close`.

        Raises InfrastructureError when they are gone.
        """

    def close(self) -> None:
        """Kill everything inside and free all it held. Idempotent; never raises."""


class SnapshotSandbox(Sandbox, Protocol):
    """One whose files can be saved for others to start from."""

    @property
    def identity(self) -> str:
        """All that the files of a prefix depend on but its steps: image, limits, settings.

        Raises InfrastructureError.
        """

    def save(self, archive: Path) -> None:
        """Write what was written since `open` to a file on the host, without what came from its settings.

        Called while no cell runs. Raises InfrastructureError and OSError.
        """

    def restore(self, archive: Path) -> None:
        """Let `open` start with what was saved, as if it had been written there. Before `open`.

        It then raises InfrastructureError and OSError where that cannot be done.
        """


def missing_capabilities(spec: SandboxSpec, capabilities: Capabilities) -> list[str]:
    """Names of the limits and resources that `spec` requires and the provider lacks."""
    required = {
        "image": spec.image is not None,
        "cpus": spec.cpus is not None,
        "memory": spec.memory is not None,
        "disk": spec.disk is not None,
        "pids": spec.pids is not None,
        "no_network": spec.network is False,
        "gpus": bool(spec.gpus),
    }
    return [name for name, needed in required.items() if needed and not getattr(capabilities, name)]
