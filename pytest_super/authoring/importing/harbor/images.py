"""Builds the images of imported tasks, each once, and tells why one cannot be built."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.providers.docker.engine import inspect
from pytest_super.kernel.providers.docker.image import LAYER, build, run_build
from pytest_super.kernel.terminal_text import shown_lines

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pytest_super.authoring.importing.harbor.environment import HarborImage

LAST_LINES = 10
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
                self._failures[image.name] = self._build(image) if inspect(image.name) is None else ""
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
                run_build(base, {}, self._network, said.append, path=str(image.folder))
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
            return "\n".join([str(error), *last_lines(said)])
        return ""


def last_lines(said: list[str]) -> list[str]:
    """The last lines of the step that failed, without colours."""
    begin = max((place for place, line in enumerate(said) if line.startswith("Step ")), default=0)
    own = [line for line in said[begin:] if not ENGINE_LINE.match(line)]
    return shown_lines("\n".join(own))[-LAST_LINES:]
