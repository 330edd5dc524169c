"""Sandboxes in containers, through the API of a Docker engine or of podman."""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_super.errors import EngineError, InfrastructureError, UnsupportedError
from pytest_super.kernel.delivery import bridge_source
from pytest_super.kernel.providers.docker.attach import AttachedStream, attach
from pytest_super.kernel.providers.docker.container_config import (
    OWN_FOLDER,
    PIP_FILE,
    WORKDIR,
    ContainerConfig,
)
from pytest_super.kernel.providers.docker.death import OUT_OF_MEMORY, EndReport
from pytest_super.kernel.providers.docker.disk_use import bytes_with_holes, bytes_written, watch
from pytest_super.kernel.providers.docker.engine import (
    connect,
    engine_errors,
    has_gpus,
    tar_of,
)
from pytest_super.kernel.providers.docker.image import software_of_image
from pytest_super.kernel.providers.docker.image.agent import facts_of, image_for, version_in
from pytest_super.kernel.providers.docker.saved_files import command_after, put_changes, save_changes
from pytest_super.kernel.providers.docker.sweep import LABEL, container_name, remove
from pytest_super.kernel.sandbox import (
    DEFAULT_DISK,
    DEFAULT_MEMORY,
    DEFAULT_PIDS,
    GIB,
    Capabilities,
    SandboxSettings,
    WritableFolders,
    default_exceeded,
)

if TYPE_CHECKING:
    from docker import APIClient

    from pytest_super.tasks.sandbox_spec import SandboxSpec

KEPT = "pytest-super-kept"
# Words in an engine's warning that its kernel cannot enforce a limit. The engine then drops the limit.
DROPPED = {"memory": "memory limit cap", "cpus": "cpu", "pids": "pids"}


class DockerSandbox:
    """A Sandbox in a container. It ends when it is closed or this process ends, even by SIGKILL."""

    name = "docker"
    writable = WritableFolders(folders=("/",), is_whole=True)
    workdir = WORKDIR

    def __init__(
        self, spec: SandboxSpec, settings: SandboxSettings, *, command: Sequence[str] | None = None
    ) -> None:
        """`command` replaces the bridge, for tests.

        Raises EngineError when the task needs GPUs, or the run an agent's program, and no engine answers;
        InfrastructureError when no image has that program.
        """
        self.spec = spec
        self.settings = settings
        self.image = image_for(spec.image, settings)
        self.disk = spec.disk or DEFAULT_DISK
        self.capabilities = Capabilities(
            isolation=True,
            image=True,
            cpus=True,
            memory=True,
            disk=True,
            pids=True,
            no_network=True,
            gpus=bool(spec.gpus) and has_gpus(),
            # The files of a mounted folder can change.
            snapshots=not settings.mounts,
        )
        self._command = command
        self._config = ContainerConfig(spec=spec, settings=settings, image=self.image)
        self._archive: Path | None = None
        self._token = secrets.token_hex(6)
        self._container = ""
        self._stream: AttachedStream | None = None
        self._end: EndReport | None = None
        self._is_closed = threading.Event()
        self._verdict = ""
        self._is_over_disk = False

    def open(self) -> AttachedStream:
        if self.spec.gpus and not self.capabilities.gpus:
            raise UnsupportedError("the task needs GPUs, and the engine has no runtime for them")
        try:
            api = connect()
            self._create(api)
            return self._start(api)
        except BaseException:
            # Also after Ctrl-C: a container that was never started does not end with its input.
            self.close()
            raise

    def _create(self, api: APIClient) -> None:
        name = container_name(self._token)
        with self._errors("create a container"):
            command = list(self._command or ("python3", "-u", "-c", bridge_source()))
            if self._archive is not None:
                command = command_after(command)
            created = api.create_container(name=name, **self._config.for_engine(command))
            self._container = created["Id"]
            if files := self._config.files():
                api.put_archive(self._container, "/", tar_of(files))
            if self._archive is not None:
                put_changes(self._container, self._archive)
        self._refuse_dropped(created.get("Warnings") or [])

    def _start(self, api: APIClient) -> AttachedStream:
        with self._errors("start a container"):
            # Both before the start: the end and the output of a short life would be lost otherwise.
            self._end = EndReport(self._container)
            self._stream = attach(api, self._container)
            api.start(self._container)
        measure = partial(bytes_written, self._container, self.disk)
        to_watch = (self._is_closed, self.disk, measure, self._kill_for_disk, self._renew)
        # A daemon that nobody awaits: it can be in a call to an engine that hangs.
        threading.Thread(target=watch, args=to_watch, name="pytest-super-watchdog", daemon=True).start()
        return self._stream

    def _refuse_dropped(self, warnings: list[str]) -> None:
        for name, words in DROPPED.items():
            dropped = [text for text in warnings if words in text.lower() and "discarded" in text.lower()]
            if dropped and getattr(self.spec, name) is not None:
                raise UnsupportedError(f"the engine cannot enforce the task's {name}: {dropped[0]}")

    def _kill_for_disk(self, written: int) -> None:
        # Before the removal, which ends the stream: then the cause is asked for.
        self._is_over_disk = True
        self._verdict = (
            f"over its disk limit ({written / GIB:.2f} GiB written, {self.disk / GIB:.2f} GiB allowed)"
        )
        remove(self._container)

    def _renew(self) -> None:
        with engine_errors("rename a container"):
            connect().rename(self._container, container_name(self._token))

    def cause_of_death(self) -> str:
        if self._is_over_disk and self.spec.disk is None:
            raise default_exceeded("disk", DEFAULT_DISK)
        if self._verdict:
            return self._verdict
        if self._end is None:
            raise EngineError("the container was never started")
        cause = self._end.cause(self.diagnostics)
        if cause == OUT_OF_MEMORY and self.spec.memory is None:
            raise default_exceeded("memory", DEFAULT_MEMORY)
        return cause

    def require_running(self) -> None:
        if self._end is not None:
            self._end.refuse_pause()

    @property
    def diagnostics(self) -> str:
        """The end of what the bridge has written to its standard error."""
        return self._stream.stderr.decode(errors="replace") if self._stream else ""

    def keep(self) -> str:
        """Save the container's files as an image; returns the commands that enter and remove it.

        Processes are not saved: they end with the container, whose standard input belongs to this process.
        """
        from docker.errors import APIError

        image = f"{KEPT}:{self._token}"
        with engine_errors("save a container's files"):
            try:
                if bytes_with_holes(connect(), self._container) > self.disk:
                    raise InfrastructureError("its files, holes included, are larger than `sandbox.disk`")
                if self.settings.pip_config:
                    # It can contain credentials of the index, and must not be in an image.
                    connect().put_archive(self._container, "/", tar_of({PIP_FILE: b""}))
                connect().commit(self._container, repository=KEPT, tag=self._token, changes=KEPT_CHANGES)
            except APIError as error:
                # 404: removed. 409: is being removed.
                if error.status_code not in (404, 409):
                    raise
                raise InfrastructureError("the container is gone, and its files with it") from None
        return f"enter it with `docker run --rm -it {image}`, remove it with `docker rmi {image}`"

    @property
    def software(self) -> str:
        """Equal wherever the same recipe was built or the same image was pulled. Raises EngineError."""
        return software_of_image(self.image, self._image())

    @property
    def agent_version(self) -> str:
        """The version of the agent's program in the image; "" without one. Raises EngineError."""
        program = self.settings.program
        return "" if program is None else version_in(self.image, program) or ""

    def _image(self) -> dict[str, Any]:
        return facts_of(self.image, is_final=not self.spec.image)

    def _errors(self, doing: str) -> AbstractContextManager[None]:
        return engine_errors(doing, image=self.image, is_shared=not self.spec.image)

    # Snapshots

    @property
    def identity(self) -> str:
        image = self._image()["Id"]
        files = {name: hashlib.sha256(data).hexdigest() for name, data in self._config.files().items()}
        spec, command = self.spec.model_dump(), list(self._command or ())
        defaults = [DEFAULT_MEMORY, DEFAULT_PIDS, DEFAULT_DISK]
        return json.dumps([image, spec, *defaults, files, self._config.environment(), command])

    def save(self, archive: Path) -> None:
        save_changes(self._container, archive, but=OWN_FOLDER, most=self.disk)

    def restore(self, archive: Path) -> None:
        self._archive = archive

    def close(self) -> None:
        self._is_closed.set()
        # Set before we remove the container, so that our own removal is not reported as the engine's failure.
        self._verdict = self._verdict or "it was closed"
        if self._stream:
            self._stream.close()
        if self._end:
            self._end.close()
        if self._container:
            # An engine that does not answer was reported already.
            with suppress(InfrastructureError):
                remove(self._container)
        self._container = ""


# With our own label, a sweep would remove the container of a person who has entered the image.
KEPT_CHANGES = [f"LABEL {LABEL}=kept", 'CMD ["bash"]']
