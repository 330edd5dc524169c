"""What the Docker tests share: an engine or a reason, the kernel image, sandboxes that get closed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.kernel.providers.docker.engine import connect
from pytest_super.kernel.providers.docker.image import DEFAULT_IMAGE
from pytest_super.kernel.providers.docker.image.unpack import unpack
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.kernel.providers.registry import find_provider
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec
from tests.docker.containers import SPEC, MakeSandbox, RunInside, read_all

if TYPE_CHECKING:
    from docker import APIClient


def unavailable(reason: str) -> None:
    """In CI no skip may hide that nothing was tested."""
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def engine() -> APIClient:
    if reason := find_provider("docker").why_unavailable():
        unavailable(reason)
    return connect()


@pytest.fixture(scope="session")
def image(engine: APIClient) -> str:  # noqa: ARG001
    """The kernel image; SUPER_TEST_IMAGE names another one."""
    name = os.environ.get("SUPER_TEST_IMAGE", DEFAULT_IMAGE)
    if reason := find_provider("docker").why_unprepared(SandboxSettings(image=name)):
        unavailable(reason)
    return name


@pytest.fixture(scope="session")
def unpacked(image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kernel image as a folder, for sandboxes without an engine."""
    folder = tmp_path_factory.mktemp("images") / "kernel"
    unpack(image, folder)
    yield folder
    # Pytest keeps the folders of three runs, and this one has hundreds of megabytes.
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def settings(image: str) -> SandboxSettings:
    return SandboxSettings(image=image, labels={"run": "tests", "task": "t", "worker": "main"})


@pytest.fixture
def make_sandbox(settings: SandboxSettings) -> Iterator[MakeSandbox]:
    made: list[DockerSandbox] = []

    def make(code: str, spec: SandboxSpec = SPEC, **given: Any) -> DockerSandbox:
        command = ["python3", "-u", "-c", code]
        made.append(DockerSandbox(spec, replace(settings, **given), command=command))
        return made[-1]

    yield make
    for sandbox in made:
        sandbox.close()


@pytest.fixture
def run_inside(make_sandbox: MakeSandbox) -> RunInside:
    def run(code: str, spec: SandboxSpec = SPEC, **given: Any) -> str:
        sandbox = make_sandbox(code, spec, **given)
        output = read_all(sandbox.open())
        return output.decode() + sandbox.diagnostics

    return run
