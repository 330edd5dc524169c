"""Builds the image with the program of an agent."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from pytest_super.kernel.providers.docker import image
from pytest_super.kernel.providers.docker.engine import read_file
from pytest_super.kernel.providers.docker.image import BUILT, BUILT_AS, run_build, software_of_image
from pytest_super.kernel.providers.docker.image.agent import LABEL, facts_of, name_with
from pytest_super.programs.installed.agent import InstalledAgent
from pytest_super.programs.installed.packages import PipPackages

RECIPES = Path(image.__file__).parent


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
    package, facts = agent.package, facts_of(base)
    tag = tag or name_with(base, agent.program(is_exact=True))
    given = {"BASE": base, "NAME": agent.name, "VERSION": agent.version}
    given["CHECK"] = agent.version_command.replace("{place}", agent.place)
    if not isinstance(package, PipPackages):
        given["PROGRAM"] = package.program
    labels = {LABEL + agent.name: agent.version, BUILT: software_of_image(base, facts), BUILT_AS: tag}
    # A file, because programs can have hundreds of megabytes.
    with (
        tempfile.TemporaryDirectory(prefix="pytest-super-agent-") as name,
        tempfile.TemporaryFile() as context,
    ):
        folder, architecture = Path(name), str(facts["Architecture"])
        print_line(f"getting {agent.name} {agent.version} for {architecture}")
        files = package.fetch(agent.version, architecture, folder)
        for file, source in (("ca.pem", ca_bundle), ("pip.conf", pip_config)):
            files[file] = folder / file
            files[file].write_bytes(read_file(source) if source else b"")
        files["Dockerfile"] = RECIPES / package.recipe / "Dockerfile"
        with tarfile.open(fileobj=context, mode="w") as archive:
            for file, path in files.items():
                archive.add(path, file)
        context.seek(0)
        run_build(tag, given, network, print_line, labels=labels, fileobj=context, custom_context=True)
    return tag
