"""What is known of the software in a container, by which trials are compared."""

import io
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_super.cli import main
from pytest_super.kernel.providers.docker.engine import tar_of
from pytest_super.kernel.providers.docker.image import BUILT, BUILT_AS
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec
from tests.docker.containers import RunInside
from tests.kernel.test_local import make_wheel

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


def test_a_list_of_ones_own_is_installed_on_top_of_a_kernel_or_a_layer(
    engine: Any, image: str, tmp_path: Path, run_inside: RunInside
) -> None:
    tags = [f"pytest-super-software:{uuid.uuid4().hex[:8]}" for _ in range(3)]
    wheel = make_wheel(tmp_path)
    recipe = f"FROM {image}\nCOPY *.whl /opt/\n".encode()
    context = io.BytesIO(tar_of({"Dockerfile": recipe, wheel.name: wheel.read_bytes()}))
    requirements = tmp_path / "list.txt"
    command = ["image", "build", "--profile", "layer", "--requirements", str(requirements)]
    cell = "import ipykernel; from importlib.metadata import distributions; "
    cell += "print([one.version for one in distributions(name='tinypackage')])"
    # The upper layer keeps what the one below it has.
    added = (f"/opt/{wheel.name}", "")
    try:
        list(engine.build(fileobj=context, custom_context=True, tag=tags[0], rm=True, decode=True))
        for base, tag, line in zip(tags[:2], tags[1:], added, strict=True):
            requirements.write_text(f"ipykernel\n{line}\n")
            assert main([*command, "--base", base, "--tag", tag]) == 0
            assert run_inside(cell, image=tag) == "['1.0']\n"
    finally:
        for tag in reversed(tags):
            engine.remove_image(tag, force=True)
