"""Builds the images of imported tasks, each once, and tells why one cannot be built."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.providers.docker.engine import connect, engine_errors
from pytest_super.kernel.providers.docker.image import LAYER, build, build_folder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pytest_super.authoring.importing.harbor.environment import HarborImage

# What the engine itself says about a build.
ENGINE_LINE = re.compile(r"Step \d+/|\s*--->|Removing intermediate container|Successfully ")


class ImageBuilder:
    """Builds on the engine, with these certificates, pip settings and network."""

    def __init__(self, *, ca_bundle: Path | None, pip_config: Path | None, network: str | None) -> None:
        self._options = {"ca_bundle": ca_bundle, "pip_config": pip_config}
        self._network = network
        self._failures: dict[str, str] = {}

    def build(self, images: Iterable[HarborImage]) -> str:
        """Why an image cannot be built, "" if all are there. Raises EngineError without an engine."""
        for image in images:
            if image.name not in self._failures:
                self._failures[image.name] = "" if is_there(image.name) else self._build(image)
            if why := self._failures[image.name]:
                return why
        return ""

    def _build(self, image: HarborImage) -> str:
        said: list[str] = []
        print(f"building {image.name} of {image.folder or image.base}", flush=True)
        try:
            base = image.base
            if image.folder is not None:
                base = f"{image.name}-base"
                build_folder(image.folder, base, network=self._network, print_line=said.append)
            build(
                profile=LAYER,
                base=base,
                tag=image.name,
                packages=None,
                requirements=None,
                network=self._network,
                print_line=said.append,
                **self._options,
            )
        except InfrastructureError as error:
            # The last line of the step that failed.
            own = [line.strip() for line in said if not ENGINE_LINE.match(line)]
            return ": ".join([str(error), *own[-1:]])
        return ""


def is_there(name: str) -> bool:
    """Raises EngineError."""
    with engine_errors("list the images"):
        return bool(connect().images(name))
