"""Where the programs of agents come from: npm's registry, or pip's index, by the settings of the user."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError

if TYPE_CHECKING:
    from pathlib import Path

# The words of npm for the engine's words.
CPUS = {"amd64": "x64", "arm64": "arm64"}
NPM_SECONDS = 900


@dataclass(frozen=True, kw_only=True)
class NpmPackage:
    """A package of npm with a program that runs without node."""

    name: str
    """For one platform, with `{version}` and `{cpu}` (x64 or arm64): `tool-linux-{cpu}@{version}`."""
    program: str
    """The path of the program in the package. It can have `*`. It becomes `{place}/bin/NAME`."""

    recipe = "npm"

    def fetch(self, version: str, architecture: str, folder: Path) -> dict[str, Path]:
        """The files that the recipe copies, downloaded into an empty folder. Raises InfrastructureError.

        By npm on this machine, which has the user's registry, certificates and proxy, and which checks the
        digest of what it downloads. No script of the package runs.
        """
        cpu = CPUS.get(architecture)
        if cpu is None:
            raise InfrastructureError(f"there is no package of npm for the processor {architecture}")
        if shutil.which("npm") is None:
            raise InfrastructureError(
                "there is no program npm, which downloads the agent: install it (the package `npm` of most "
                "distributions), or build the image where there is one"
            )
        spec = self.name.format(version=version, cpu=cpu)
        command = ["npm", "pack", "--loglevel=error", "--ignore-scripts", spec]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=NPM_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InfrastructureError(f"npm cannot download {spec}: {error}") from None
        archives = list(folder.glob("*.tgz"))
        if done.returncode or len(archives) != 1:
            raise InfrastructureError(f"npm cannot download {spec}: {error_of(done.stderr)}")
        return {"package.tgz": archives[0]}


@dataclass(frozen=True, kw_only=True)
class PipPackages:
    """Packages of pip, for a virtual environment of their own in the image."""

    requirements: tuple[str, ...]
    """With `{version}`: `tool=={version}`."""

    recipe = "pip"

    def fetch(self, version: str, architecture: str, folder: Path) -> dict[str, Path]:  # noqa: ARG002
        """The files that the recipe copies, written into an empty folder. pip runs in the build."""
        file = folder / "requirements.txt"
        file.write_text("".join(f"{one.format(version=version)}\n" for one in self.requirements))
        return {file.name: file}


def error_of(printed: str) -> str:
    """What npm says of an error on its first two lines: a code, and what it means."""
    lines = [
        line.removeprefix("npm error ") for line in printed.splitlines() if line.startswith("npm error ")
    ]
    return ": ".join(lines[:2]) or printed.strip().rpartition("\n")[2] or "it printed nothing"
