"""Where the programs of agents come from: npm's registry, or pip's index, by the settings of the user."""

import shlex
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.files import anonymous

# The words of npm for the engine's words.
CPUS = {"amd64": "x64", "arm64": "arm64"}
NPM_SECONDS = 900
NPM_OPTIONS = ("--loglevel=error", "--ignore-scripts")
INSTALL_OPTIONS = ("--prefix=.", "--no-save", "--package-lock=false", "--omit=dev", "--no-audit")
# Node is not in the PATH, so that tasks find the same programs as without the agent.
START = """\
#!/bin/sh
modules="$(dirname "$(readlink -f "$0")")/node_modules"
exec "$modules/{node}/bin/node" "$modules/.bin/"{command} "$@"
"""


@dataclass(frozen=True, kw_only=True)
class NpmPackage:
    """A package of npm with a program that runs without node."""

    name: str
    """For one platform, with `{version}` and `{cpu}` (x64 or arm64): `tool-linux-{cpu}@{version}`."""
    program: str
    """The path of the program in the package. It can have `*`. It becomes `{place}/bin/NAME`."""

    recipe = "npm"

    def fetch(self, version: str, architecture: str, folder: Path) -> dict[str, Path]:
        """The files that the recipe copies, downloaded into an empty folder. Raises InfrastructureError."""
        spec = self.name.format(version=version, cpu=cpu_of(architecture))
        run_npm("pack", [], [spec], folder)
        archives = list(folder.glob("*.tgz"))
        if len(archives) != 1:
            raise InfrastructureError(f"npm cannot download {spec}: it made no archive")
        return {"package.tgz": archives[0]}


@dataclass(frozen=True, kw_only=True)
class NodePackage:
    """A package of npm with a program that needs node. The image gets both, and the dependencies."""

    name: str
    """With `{version}`: `tool@{version}`."""
    command: str
    """The program by its name in the package's `bin`. It becomes `{place}/bin/NAME`."""
    node: str = "22.23.3"
    """The version of node."""

    recipe = "npm"
    program = "run"

    def fetch(self, version: str, architecture: str, folder: Path) -> dict[str, Path]:
        """The files that the recipe copies, made in an empty folder. Raises InfrastructureError."""
        cpu = cpu_of(architecture)
        node, package = f"node-linux-{cpu}", folder / "package"
        package.mkdir()
        platform = ["--os=linux", f"--cpu={cpu}", "--libc=glibc"]
        specs = [self.name.format(version=version), f"{node}@{self.node}"]
        run_npm("install", [*INSTALL_OPTIONS, *platform], specs, package)
        if not (package / "node_modules/.bin" / self.command).exists():
            raise InfrastructureError(f"the package {specs[0]} has no command {self.command!r}")
        start = package / self.program
        start.write_text(START.format(node=node, command=shlex.quote(self.command)))
        start.chmod(0o755)
        archive = folder / "package.tgz"
        with tarfile.open(archive, "w") as file:
            file.add(package, package.name, filter=anonymous)
        return {archive.name: archive}


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


def cpu_of(architecture: str) -> str:
    """Name the processor in npm's words. Raises InfrastructureError."""
    if (cpu := CPUS.get(architecture)) is None:
        raise InfrastructureError(f"there is no package of npm for the processor {architecture}")
    return cpu


def run_npm(command: str, options: list[str], specs: list[str], folder: Path) -> None:
    """Run npm by the user's settings, and no script of a package. Raises InfrastructureError."""
    if shutil.which("npm") is None:
        raise InfrastructureError(
            "the program npm, which downloads the agent, is missing: install it (the package `npm` of most "
            "distributions), or build the image where there is one"
        )
    words, shown = ["npm", command, *NPM_OPTIONS, *options, *specs], " and ".join(specs)
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=NPM_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfrastructureError(f"npm cannot download {shown}: {error}") from None
    if done.returncode:
        raise InfrastructureError(f"npm cannot download {shown}: {error_of(done.stderr)}")


def error_of(printed: str) -> str:
    """What npm says of an error on its first two lines: a code, and what it means."""
    lines = [
        line.removeprefix("npm error ") for line in printed.splitlines() if line.startswith("npm error ")
    ]
    return ": ".join(lines[:2]) or printed.strip().rpartition("\n")[2] or "it printed nothing"
