"""The system that code in a bubblewrap sandbox sees: this machine's, or that of an unpacked image.

Both classes have the same members. Options are those of bwrap, of which later ones cover earlier ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from pytest_super.kernel.providers.bwrap import (
    ETC,
    ETC_OF_NETWORK,
    SYSTEM,
    bind,
    covered,
    etc_folders,
    shipped_tasks,
    system_binds,
)
from pytest_super.kernel.providers.host_environment import (
    Interpreter,
    allowed_environment,
    is_within,
    python_parts,
)
from pytest_super.kernel.providers.unpacked_image import image_in, is_folder, tree_binds
from pytest_super.kernel.sandbox import FIXED_ENVIRONMENT, SandboxSettings


def system_of(settings: SandboxSettings, *, has_network: bool) -> HostSystem | ImageSystem:
    """Raises InfrastructureError for an image in a folder that is not one. Other images are ignored."""
    if settings.image and is_folder(settings.image):
        return ImageSystem(settings.image, settings, has_network)
    return HostSystem(settings, has_network)


class HostSystem:
    """Programs and libraries of this machine, and pytest's Python with its packages."""

    software: str | None = None
    """What tasks find installed; None for the packages of the running Python."""
    interpreter: Interpreter | None = None
    """The Python below the virtual environment; None for the running one."""

    def __init__(self, settings: SandboxSettings, has_network: bool) -> None:
        self._settings = settings
        self.etc = (*ETC, *ETC_OF_NETWORK) if has_network else ETC
        """What of the host's /etc is in the sandbox's own: `copy_etc_files` copies the files."""

    def binds(self) -> list[str]:
        """The options before those for the sandbox's own folders."""
        return [*system_binds(), *self._covered(Path(name) for name in SYSTEM if not os.path.islink(name))]

    def binds_above(self, folder: Path) -> list[str]:
        """The options after them. `folder` is the sandbox's."""
        return [
            *bind(folder / "etc", "/etc", option="--bind"),
            *("--symlink", "../tmp", "/var/tmp"),
            *etc_folders(self.etc),
            *(word for part in python_parts() for word in bind(part)),
            *self._covered(python_parts()),  # once more: the binds above can show them again
        ]

    def _covered(self, folders: Iterable[Path]) -> list[str]:
        return covered([*self._settings.hidden, *shipped_tasks()], folders)

    def variables(self) -> dict[str, str]:
        """The variables inside, PATH among them."""
        seen = [*map(Path, SYSTEM), *(Path("/etc", name) for name in ETC), *python_parts()]
        path = self._settings.environment.get("PATH", os.defpath).split(":")
        seen += map(Path, self._settings.mounts.values())
        entries = [entry for entry in path if is_within(Path(entry), seen)]
        return {**variables_of_host(self._settings, seen), "PATH": ":".join(entries)}


class ImageSystem:
    """The files and variables of an unpacked image."""

    def __init__(self, folder: str, settings: SandboxSettings, has_network: bool) -> None:
        self._folder, self._settings = folder, settings
        self._image = image_in(folder)
        self.etc = ETC_OF_NETWORK[:1] if has_network else ()
        self.software = self._image.software
        self.interpreter = self._image.python

    def binds(self) -> list[str]:
        return tree_binds(self._folder)

    def binds_above(self, folder: Path) -> list[str]:
        files = sorted((folder / "etc").iterdir())
        return [
            *bind(folder / "tmp", "/var/tmp", option="--bind"),
            *(word for file in files for word in bind(file, f"/etc/{file.name}")),
        ]

    def variables(self) -> dict[str, str]:
        mounts = [Path(inside) for inside in self._settings.mounts.values()]
        of_host = {**variables_of_host(self._settings, mounts), "PATH": os.defpath}
        return {**of_host, **self._image.environment, **FIXED_ENVIRONMENT}


def variables_of_host(settings: SandboxSettings, seen: Iterable[Path]) -> dict[str, str]:
    """The allowed ones, without paths that do not exist inside, such as the cache of pip."""
    return {
        name: value
        for name, value in allowed_environment(settings.environment).items()
        if not value.startswith("/") or is_within(Path(value), seen)
    }
