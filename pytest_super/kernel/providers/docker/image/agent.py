"""Images with the program of an agent, on top of a kernel image: their names, labels and build."""

from __future__ import annotations

import re
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.providers.docker.engine import engine_errors, inspect, missing_image
from pytest_super.kernel.providers.docker.image import (
    BUILT,
    BUILT_AS,
    DEFAULT_IMAGE,
    run_build,
    software_of_image,
)

if TYPE_CHECKING:
    from pytest_super.kernel.sandbox import ProgramInImage, SandboxSettings

# With the name of the agent behind it, the label that has the version of its program.
LABEL = "pytest-super.agent."
_NOT_IN_TAGS = re.compile(r"[^\w.-]")


def name_with(image: str, program: ProgramInImage) -> str:
    """The name of the image that has the program on top of `image`: `repository:tag-codex-0.169.0`."""
    repository, _, pinned = image.partition("@")
    if not pinned:
        repository, colon, tag = image.rpartition(":")
        # The colon of a registry's port.
        if not colon or "/" in tag:
            repository, tag = image, "latest"
    else:
        tag = pinned.rpartition(":")[2][:12]
    return f"{repository}:{_NOT_IN_TAGS.sub('-', f'{tag}-{program.name}-{program.version}')}"


def image_for(own: str | None, settings: SandboxSettings) -> str:
    """The image of a task, else of the run, with the agent's program if any. Raises InfrastructureError."""
    image, program = own or settings.image or DEFAULT_IMAGE, settings.program
    if program is None:
        return image
    places = (image, name_with(image, program))
    for name in places:
        version = version_in(name, program)
        if version is None or (program.is_exact and version != program.version):
            continue
        if Version(version) < Version(program.oldest):
            raise InfrastructureError(
                f"the image {name} has {program.name} {version}, and {program.oldest} is the oldest that "
                f"works here: {how_to_build(image, program)}",
                is_final=not own,
            )
        return name
    facts_of(image, is_final=not own)
    words = f"{program.name} {program.version}" if program.is_exact else f"the agent {program.name}"
    raise InfrastructureError(
        f"neither the image {' nor '.join(places)} has {words}: {how_to_build(image, program)}",
        is_final=not own,
    )


def how_to_build(image: str, program: ProgramInImage) -> str:
    exact = f"=={program.version}" if program.is_exact else ""
    base = "" if image == DEFAULT_IMAGE else f" --base {image}"
    return f"build one with `pytest-super image build --agent {program.name}{exact}{base}`"


def version_in(image: str, program: ProgramInImage) -> str | None:
    """The version of the program in an image; None if it is not there, or there is no such image."""
    found = inspect(image)
    labels = {} if found is None else found["Config"].get("Labels") or {}
    version = labels.get(LABEL + program.name)
    return None if version is None else str(version)


def facts_of(image: str, *, is_final: bool = True) -> dict[str, Any]:
    """What the engine knows of an image. Raises InfrastructureError if it does not have it."""
    found = inspect(image)
    if found is None:
        raise missing_image(image, is_final=is_final)
    return found


def build_with(
    program: ProgramInImage,
    *,
    recipe: str,
    base: str,
    tag: str | None,
    arguments: Mapping[str, str],
    files: Mapping[str, Path],
    network: str | None,
    print_line: Callable[[str], None],
) -> str:
    """Build an image with the program on top of `base`, from the Dockerfile in `recipe`; returns its name."""
    tag = tag or name_with(base, program)
    files = {"Dockerfile": Path(__file__).parent / recipe / "Dockerfile", **files}
    given = {"BASE": base, "NAME": program.name, "VERSION": program.version, **arguments}
    software = software_of_image(base, facts_of(base))
    labels = {LABEL + program.name: program.version, BUILT: software, BUILT_AS: tag}
    # A file, because programs can have hundreds of megabytes.
    with tempfile.TemporaryFile() as context, engine_errors("build the image"):
        with tarfile.open(fileobj=context, mode="w") as archive:
            for name, path in files.items():
                archive.add(path, name)
        context.seek(0)
        run_build(tag, given, network, print_line, labels=labels, fileobj=context, custom_context=True)
    return tag
