"""The provider `docker`. It imports the rest on use, because `auto` can find that no engine answers."""

from __future__ import annotations

from pytest_super.errors import EngineError
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.kernel.providers.registry import Provider
from pytest_super.kernel.providers.unpacked_image import is_folder
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec


class DockerProvider(Provider):
    """Works where the engine of Docker or podman answers."""

    def why_not_isolated(self) -> None:
        return None

    def why_unavailable(self) -> str | None:
        from pytest_super.kernel.providers.docker.engine import connect

        try:
            connect()
        except EngineError as error:
            return str(error)
        return None

    def why_unprepared(self, settings: SandboxSettings) -> str | None:
        """Whether the kernel image is missing, which tasks without an image of their own need."""
        from pytest_super.kernel.providers.docker import engine, image

        name = settings.image or image.DEFAULT_IMAGE
        if is_folder(name):
            return f"containers do not start from a folder ({name}): use --super-sandbox=bubblewrap"
        found = engine.inspect(name)
        return str(engine.missing_image(name, is_final=True)) if found is None else None

    def make(self, spec: SandboxSpec, settings: SandboxSettings) -> DockerSandbox:
        from pytest_super.kernel.providers.docker.sandbox import DockerSandbox

        return DockerSandbox(spec, settings)

    def sweep(self) -> None:
        from pytest_super.kernel.providers.docker.sweep import sweep

        sweep()
