"""The interface of sandboxes, which every provider implements: operations, capabilities and settings."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_super.errors import InfrastructureError, UnsupportedError

if TYPE_CHECKING:
    from pytest_super.tasks.sandbox_spec import SandboxSpec


FIXED_ENVIRONMENT = {"TZ": "UTC", "PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
"""Variables that every provider sets, whatever the machine or image says. Those of a task override them."""

GIB = 2**30
DEFAULT_MEMORY = 4 * GIB
"""Bytes that a sandbox can use if its task sets no limit: sixteen do not overload a shared machine."""
DEFAULT_PIDS = 1024
"""Processes and threads; numpy alone starts one thread per core."""
DEFAULT_DISK = 10 * GIB
"""Bytes that can be written in a container whose task sets no limit."""


class Stream(Protocol):
    """A duplex byte stream, to the standard input and from the standard output of the bridge."""

    def read(self, size: int) -> bytes:
        """Read one to `size` bytes; b"" at the end. One thread alone calls this."""

    def write(self, data: bytes) -> None:
        """Write all of `data`. Raises OSError when the other side is gone."""

    def close(self) -> None:
        """End both directions, which ends the bridge; a blocked `read` returns b"". Idempotent."""


AGENTS = "/opt/super/agents"
"""The folder, in images, in which the programs of agents are installed, each in a folder of its name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramInImage:
    """The program of an agent, which the sandbox's image must have."""

    name: str
    version: str
    oldest: str
    """The oldest version that works."""
    is_exact: bool
    """Whether the user has named the version. Else an image with another one will do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxSettings:
    """A run's settings for all its sandboxes. A provider ignores fields that it does not support."""

    image: str | None = None
    """The image of tasks that name none; None for the provider's default."""
    program: ProgramInImage | None = None
    """The agent's program; None for an agent without one."""
    ca_bundle: Path | None = None
    """Certificates (PEM) to trust where there is a network."""
    pip_config: Path | None = None
    """A pip.conf that pip inside reads."""
    mounts: Mapping[str, str] = field(default_factory=dict)
    """Shared folders, read-only: the path on the host to the path inside."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """`run`, `task` and `worker`, for providers that can label their sandboxes."""
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """The host's variables. A provider passes on those that `allowed_environment` returns, or none."""
    hidden: tuple[Path, ...] = ()
    """Folders of the host that code inside an isolating sandbox must never see: task files and results."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """The limits and features that a provider supports. Tasks that require others are refused."""

    isolation: bool = False
    """Code inside cannot read or change anything outside."""
    image: bool = False
    cpus: bool = False
    memory: bool = False
    disk: bool = False
    pids: bool = False
    no_network: bool = False
    gpus: bool = False
    snapshots: bool = False
    """The sandbox is a SnapshotSandbox."""
    remark: str = ""
    """Why some limits cannot be enforced on this machine; shown when a task that needs one is refused."""


class Sandbox(Protocol):
    """A place for one kernel, made for one trial and removed after it.

    It sets the variables of FIXED_ENVIRONMENT, and then those of the task.
    Optional are attributes `name` and `software` (see the functions below), `agent_version` (of the agent's
    program) and `writable` (WritableFolders), and a method `require_running`: called when a cell takes too
    long, it raises EngineError if somebody outside has stopped the sandbox.
    """

    capabilities: Capabilities
    workdir: str
    """The absolute path, inside, in which cells start."""

    def open(self) -> Stream:
        """Start the bridge inside and return its stream.

        Raises EngineError when the engine does not answer or refuses, InfrastructureError for a problem that
        a person must fix (a missing image).
        """

    def cause_of_death(self) -> str:
        """Why the stream ended, as a short text: `out of memory`, `killed (exit code 137)`.

        Raises EngineError when the engine does not answer, or somebody outside ended or stopped the sandbox,
        and `default_exceeded`: the agent has not failed. It is called also when the host closed the stream
        of a silent sandbox.
        """

    def keep(self) -> str:
        """Save the sandbox's files for a person; returns the command that opens them. Before `close`.

        Raises InfrastructureError when the files are gone.
        """

    def close(self) -> None:
        """Kill everything inside and free all resources. Idempotent; never raises."""


class SnapshotSandbox(Sandbox, Protocol):
    """A sandbox whose files can be saved, so that other sandboxes can start from them."""

    @property
    def identity(self) -> str:
        """A text of everything that a prefix's files depend on except its steps: image, limits, settings.

        Raises InfrastructureError.
        """

    def save(self, archive: Path) -> None:
        """Save the files changed since `open` in an archive on the host, except copies of settings' files.

        Called while no cell runs. Raises InfrastructureError and OSError.
        """

    def restore(self, archive: Path) -> None:
        """Make `open` start with the saved files. Call it before `open`.

        `open` then raises InfrastructureError or OSError if they cannot be restored.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class WritableFolders:
    """Where code inside can write, apart from places for temporary files."""

    folders: tuple[str, ...]
    """Absolute paths, inside."""
    is_whole: bool
    """Whether it can write nowhere else."""


def name_of(sandbox: Sandbox) -> str:
    """The name of a sandbox in results: its `name`, such as `docker`, or else the name of its class."""
    return str(getattr(sandbox, "name", type(sandbox).__name__))


def software_of(sandbox: Sandbox, spec: SandboxSpec) -> str:
    """What code inside finds installed, as far as a task's result can depend on it.

    It is the sandbox's `software`, such as an image, or else this process's Python with the packages that
    `spec` requires. Trials with another one cannot be compared. Raises EngineError.
    """
    if (software := getattr(sandbox, "software", None)) is not None:
        return str(software)
    names = sorted({re.split(r"[^\w.-]", one.strip(), maxsplit=1)[0].lower() for one in spec.packages})
    return " ".join([f"Python {platform.python_version()}", *map(installed, names)])


def default_exceeded(field: str, default: int) -> InfrastructureError:
    """The failure of a sandbox whose task sets no limit, and that exceeded our default."""
    return InfrastructureError(
        f"the sandbox exceeded the default of {default / GIB:g} GiB: set `sandbox.{field}` in the task file "
        "to what the task needs; a trial that exceeds its task's own limit is a miss"
    )


def installed(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"


def refuse_missing(task_id: str, spec: SandboxSpec, sandbox: Sandbox) -> None:
    """Raises UnsupportedError if the sandbox lacks limits or resources that the task's `spec` requires."""
    required = {name: getattr(spec, name) is not None for name in ("image", "cpus", "memory", "disk", "pids")}
    required |= {"no_network": spec.network is False, "gpus": bool(spec.gpus)}
    capabilities = sandbox.capabilities
    missing = [name for name, needed in required.items() if needed and not getattr(capabilities, name)]
    if missing:
        words = [f"the image {spec.image!r}" if name == "image" else name for name in missing]
        # An image is not a limit.
        remark = f" ({capabilities.remark})" if capabilities.remark and missing != ["image"] else ""
        raise UnsupportedError(
            f"{task_id} requires {', '.join(words)}, which the {name_of(sandbox)} sandbox lacks{remark}"
        )
