"""The settings with which a container is created: its limits, environment, labels and files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_super.kernel.providers.docker.archive import read_file
from pytest_super.kernel.providers.docker.sweep import LABEL
from pytest_super.kernel.providers.host_environment import CA_VARIABLES
from pytest_super.kernel.providers.owner import owner_label

if TYPE_CHECKING:
    from pathlib import Path

    from docker import APIClient

    from pytest_super.kernel.sandbox import SandboxSettings
    from pytest_super.tasks.task import SandboxSpec

GIB = 2**30
WORKDIR = "/workspace"
# Without these, `apt-get` and `tar` with other owners' files fail. No raw sockets, mounts or devices.
CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETUID", "SETGID"]
OWN_FOLDER = "etc/pytest-super"
CA_FILE = f"{OWN_FOLDER}/ca.pem"
PIP_FILE = f"{OWN_FOLDER}/pip.conf"

# Limits that a task's own `sandbox` fields override. They suffice for SUPER's tasks, and sixteen such
# containers do not overload a shared machine.
MEMORY = 4 * GIB
"""Bytes, without swap. /dev/shm can have half of it and counts."""
PIDS = 1024
"""Processes and threads; numpy alone starts one thread per core."""
DISK = 10 * GIB
"""Bytes written outside of /dev/shm. Checked every few seconds, so a fast writer can exceed it."""


@dataclass(frozen=True, kw_only=True)
class ContainerConfig:
    """A task's specification and the project's settings, in the form that the engine takes."""

    spec: SandboxSpec
    settings: SandboxSettings
    image: str

    def for_engine(self, api: APIClient, command: list[str]) -> dict[str, Any]:
        """The arguments of docker-py's `create_container`, without the name."""
        return {
            "image": self.image,
            # This disables the entry point of the image.
            "entrypoint": [""],
            "command": command,
            "user": "0:0",
            "hostname": "sandbox",
            "working_dir": WORKDIR,
            "environment": self.environment(),
            "labels": self._labels(),
            # Makes docker-py set StdinOnce: the engine closes the input when this process is gone.
            "stdin_open": True,
            "host_config": self._host_config(api),
        }

    def _host_config(self, api: APIClient) -> dict[str, Any]:
        from docker.types import LogConfig, Ulimit

        memory, cpus = self.spec.memory or MEMORY, self.spec.cpus
        return api.create_host_config(
            network_mode="bridge" if self.spec.network else "none",
            cap_drop=["ALL"],
            cap_add=CAPABILITIES,
            security_opt=["no-new-privileges"],
            mem_limit=memory,
            # The limit of memory and swap together, so there is no swap.
            memswap_limit=memory,
            shm_size=memory // 2,
            # By default all, shared fairly. The engine refuses more than the machine has.
            nano_cpus=int(cpus * 1e9) if cpus else None,
            pids_limit=self.spec.pids or PIDS,
            init=True,
            # By the engine, so also when this process is killed.
            auto_remove=True,
            # The stream carries all output; the engine would keep another copy on its disk.
            log_config=LogConfig(type="none"),
            ulimits=[Ulimit(name="core", soft=0, hard=0)],
            mounts=self._mounts(),
            device_requests=self._devices(),
        )

    def _mounts(self) -> list[Any]:
        from docker.types import Mount

        return [
            Mount(target, source, type="bind", read_only=True)
            for source, target in self.settings.mounts.items()
        ]

    def _devices(self) -> list[Any] | None:
        from docker.types import DeviceRequest

        return [DeviceRequest(count=self.spec.gpus, capabilities=[["gpu"]])] if self.spec.gpus else None

    def environment(self) -> dict[str, str]:
        given = {"LANG": "C.UTF-8"}
        if self._certificates:
            given |= dict.fromkeys(CA_VARIABLES, f"/{CA_FILE}")
        if self.settings.pip_config:
            given["PIP_CONFIG_FILE"] = f"/{PIP_FILE}"
        return given | self.spec.env

    def files(self) -> dict[str, bytes]:
        """The files that are copied into the container before it starts: certificates, pip's settings."""
        given = {CA_FILE: self._certificates, PIP_FILE: self.settings.pip_config}
        return {name: read_file(path) for name, path in given.items() if path}

    @property
    def _certificates(self) -> Path | None:
        """None without a network: they are useless then, and the engine takes 0.1 s to copy a file."""
        return self.settings.ca_bundle if self.spec.network else None

    def _labels(self) -> dict[str, str]:
        ours = {f"{LABEL}.{name}": value for name, value in self.settings.labels.items()}
        return ours | {LABEL: "1", f"{LABEL}.owner": owner_label()}
