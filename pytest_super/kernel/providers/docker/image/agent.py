"""Images with the program of an agent, on top of a kernel image: their names and labels."""

from __future__ import annotations

import re
from typing import Any

from packaging.version import Version

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.providers.docker.engine import inspect, missing_image
from pytest_super.kernel.providers.docker.image import (
    DEFAULT_IMAGE,
)
from pytest_super.kernel.sandbox import ProgramInImage, SandboxSettings

# With the name of the agent behind it, the label that has the version of its program.
LABEL = "pytest-super.agent."
_NOT_IN_TAGS = re.compile(r"[^\w.-]")


def name_with(image: str, program: ProgramInImage) -> str:
    """The name of the image that has the program on top of `image`: `repository:tag-codex-0.169.0`."""
    from docker.utils import parse_repository_tag

    repository, tag = parse_repository_tag(image)
    tag = tag or "latest"
    if "@" in image:
        tag = tag.rpartition(":")[2][:12]
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
