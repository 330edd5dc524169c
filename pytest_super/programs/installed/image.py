"""Builds the image with the program of an agent."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.kernel.providers.docker.engine import read_file
from pytest_super.kernel.providers.docker.image.agent import build_with, facts_of
from pytest_super.programs.installed.packages import PipPackages

if TYPE_CHECKING:
    from pytest_super.programs.installed.agent import InstalledAgent


def build_image(
    agent: InstalledAgent,
    *,
    base: str,
    tag: str | None,
    ca_bundle: Path | None,
    pip_config: Path | None,
    network: str | None,
    print_line: Callable[[str], None],
) -> str:
    """Build an image on top of `base`, by `docker.image.build`'s options. Returns its name."""
    package = agent.package
    arguments = {"CHECK": agent.version_command.replace("{place}", agent.place)}
    if not isinstance(package, PipPackages):
        arguments["PROGRAM"] = package.program
    architecture = str(facts_of(base)["Architecture"])
    with tempfile.TemporaryDirectory(prefix="pytest-super-agent-") as name:
        folder = Path(name)
        print_line(f"getting {agent.name} {agent.version} for {architecture}")
        files = package.fetch(agent.version, architecture, folder)
        for file, source in (("ca.pem", ca_bundle), ("pip.conf", pip_config)):
            files[file] = folder / file
            files[file].write_bytes(read_file(source) if source else b"")
        return build_with(
            agent.program(is_exact=True),
            recipe=package.recipe,
            base=base,
            tag=tag,
            arguments=arguments,
            files=files,
            network=network,
            print_line=print_line,
        )
