"""A kernel in a container does what every kernel must."""

# mypy: disable-error-code="no-redef"
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_super.kernel.conformance import *  # noqa: F403
from pytest_super.kernel.providers.docker import disk_use
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.kernel.sandbox import Sandbox, SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec
from tests.docker.containers import containers

if TYPE_CHECKING:
    from docker import APIClient

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def sandbox_factory(settings: SandboxSettings) -> Iterator[Callable[[SandboxSpec], DockerSandbox]]:
    with pytest.MonkeyPatch.context() as patch:
        # What fills a disk writes gigabytes until the next look.
        patch.setattr(disk_use, "CHECK_SECONDS", 0.3)
        patch.setattr(disk_use, "COST_SHARE", 1.0)
        yield lambda spec: DockerSandbox(spec, settings)


@pytest.fixture
def remains(engine: APIClient) -> Callable[[Sandbox], list[str]]:
    def names(sandbox: Sandbox) -> list[str]:
        assert isinstance(sandbox, DockerSandbox)
        return [container["Id"] for container in containers(engine, sandbox._token)]

    return names
