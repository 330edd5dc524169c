"""What is known of the software in a container, by which trials are compared."""

from __future__ import annotations

import io
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.kernel.providers.docker.image import BUILT, BUILT_AS
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.docker


def software(image: str) -> str:
    return DockerSandbox(SandboxSpec(), SandboxSettings(image=image)).software


@pytest.fixture
def build(engine: Any, image: str) -> Iterator[Callable[..., str]]:
    tags: list[str] = []

    def made(**labels: str) -> str:
        tag = f"pytest-super-software:{uuid.uuid4().hex[:8]}"
        tags.append(tag)
        recipe = io.BytesIO(f"FROM {image}\nENV A={tag}\n".encode())
        given = {name: tag if value == "own tag" else value for name, value in labels.items()}
        list(engine.build(fileobj=recipe, tag=tag, labels=given, rm=True, decode=True))
        return tag

    yield made
    for tag in tags:
        engine.remove_image(tag, force=True)


def test_builds_of_one_recipe_are_equal_and_images_on_top_of_them_are_not(
    build: Callable[..., str], engine: Any
) -> None:
    ours = [build(**{BUILT: "recipe", BUILT_AS: "own tag"}) for _ in range(2)]
    assert [software(tag) for tag in ours] == ["recipe", "recipe"]
    # The same labels, inherited: the tag in them is that of another image.
    child = build(**{BUILT: "recipe", BUILT_AS: ours[0]})
    assert software(child) == engine.inspect_image(child)["Id"]
