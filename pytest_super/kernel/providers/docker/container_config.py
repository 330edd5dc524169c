"""The settings with which a container is created: its limits, environment, labels and files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_super.kernel.providers.docker.engine import read_file
from pytest_super.kernel.providers.docker.sweep import LABEL
from pytest_super.kernel.providers.host_environment import CA_VARIABLES
from pytest_super.kernel.providers.sandbox_folder import owner_label
from pytest_super.kernel.sandbox import DEFAULT_MEMORY, DEFAULT_PIDS, FIXED_ENVIRONMENT, SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec

WORKDIR = "/workspace"
# Without these, `apt-get` and `tar` with other owners' files fail. No raw sockets, mounts or devices.
CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETUID", "SETGID"]
OWN_FOLDER = "etc/pytest-super"
CA_FILE = f"{OWN_FOLDER}/ca.pem"
PIP_FILE = f"{OWN_FOLDER}/pip.conf"


@dataclass(frozen=True, kw_only=True)
class ContainerConfig:
    """A task's specification and the project's settings, in the form that the engine takes."""

    spec: SandboxSpec
    settings: SandboxSettings
    image: str

    def for_engine(self, command: list[str]) -> dict[str, Any]:
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
            "labels": {
                **{f"{LABEL}.{name}": value for name, value in self.settings.labels.items()},
                LABEL: "1",
                f"{LABEL}.owner": owner_label(),
            },
            # Makes docker-py set StdinOnce: the engine closes the input when this process is gone.
            "stdin_open": True,
            # Else docker-py adds the proxies of the user's client, passwords included, to the environment.
            "use_config_proxy": False,
            "host_config": self._host_config(),
        }

    def _host_config(self) -> dict[str, Any]:
        """The keys are names of the engine's API."""
        memory, gpus = self.spec.memory or DEFAULT_MEMORY, self.spec.gpus
        return {
            "NetworkMode": "bridge" if self.spec.network else "none",
            "CapDrop": ["ALL"],
            "CapAdd": CAPABILITIES,
            "SecurityOpt": ["no-new-privileges"],
            "Memory": memory,
            # The limit of memory and swap together, so there is no swap.
            "MemorySwap": memory,
            # Its content counts as memory.
            "ShmSize": memory // 2,
            # By default all, shared fairly. The engine refuses more than the machine has.
            "NanoCpus": int((self.spec.cpus or 0) * 1e9),
            "PidsLimit": self.spec.pids or DEFAULT_PIDS,
            # Its first process would keep the stream open, and code inside could write to it.
            "Init": False,
            # By the engine, so also when this process is killed.
            "AutoRemove": True,
            # The stream carries all output; the engine would keep another copy on its disk.
            "LogConfig": {"Type": "none", "Config": {}},
            "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
            "Mounts": [
                {"Type": "bind", "Source": source, "Target": target, "ReadOnly": True}
                for source, target in self.settings.mounts.items()
            ],
            "DeviceRequests": [{"Count": gpus, "Capabilities": [["gpu"]]}] if gpus else [],
        }

    def environment(self) -> dict[str, str]:
        given = dict(FIXED_ENVIRONMENT)
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
        """The certificates; None without a network, where they are useless and take 0.1 s to copy."""
        return self.settings.ca_bundle if self.spec.network else None
