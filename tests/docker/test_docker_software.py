"""What is known of the software in a container, by which trials are compared."""

from __future__ import annotations

import io
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.cli import main
from pytest_super.kernel.providers.docker.archive import tar_of
from pytest_super.kernel.providers.docker.image import BUILT, BUILT_AS
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec
from tests.kernel.test_local import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.docker.containers import RunInside

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


def test_a_list_of_ones_own_is_installed_on_top_of_an_image_that_has_a_kernel(
    engine: Any, image: str, tmp_path: Path, run_inside: RunInside
) -> None:
    base, tag = (f"pytest-super-software:{uuid.uuid4().hex[:8]}" for _ in range(2))
    wheel = make_wheel(tmp_path)
    recipe = f"FROM {image}\nCOPY {wheel.name} /opt/{wheel.name}\n".encode()
    context = io.BytesIO(tar_of({"Dockerfile": recipe, wheel.name: wheel.read_bytes()}))
    requirements = tmp_path / "list.txt"
    requirements.write_text(f"ipykernel\n/opt/{wheel.name}\n")
    options = ("--base", base, "--tag", tag, "--requirements", str(requirements))
    try:
        list(engine.build(fileobj=context, custom_context=True, tag=base, rm=True, decode=True))
        assert main(["image", "build", "--profile", "layer", *options]) == 0
        assert run_inside("import ipykernel, tinypackage; print('both')", image=tag) == "both\n"
    finally:
        for name in (tag, base):
            engine.remove_image(name, force=True)
