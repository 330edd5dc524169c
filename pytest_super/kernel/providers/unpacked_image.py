"""An image as a folder, which `pytest-super image build --unpack` writes for machines without an engine."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.providers.host_environment import Interpreter
from pytest_super.store.json_lines import damage

RECORD = "pytest-super.json"
# What the sandbox has of its own.
FRESH = frozenset(("dev", "home", "proc", "run", "sys", "tmp", "venv", "workspace"))
# Files that the sandbox covers. The tree has them, because no mount point can be made in it later.
COVERED = tuple(
    f"etc/{name}"
    for name in ("passwd", "group", "hosts", "resolv.conf", "pytest-super/ca.pem", "pytest-super/pip.conf")
)
HOW_TO_UNPACK = "write it with `pytest-super image build --unpack FOLDER` where an engine runs"


@dataclass(frozen=True, kw_only=True)
class UnpackedImage:
    """What is recorded in the folder. It is written last, so a folder with it is whole."""

    name: str
    software: str
    """What tasks find installed: equal to that of containers of the image."""
    id: str
    environment: Mapping[str, str]
    python: Interpreter

    def write(self, folder: Path) -> None:
        (folder / RECORD).write_text(json.dumps(asdict(self), indent=1))

    def __str__(self) -> str:
        return f"{self.name} ({self.id[:19]})"


def is_folder(image: str) -> bool:
    """Whether an image is named by its folder: names of an engine's images begin otherwise."""
    return image.startswith("/")


@cache
def image_in(folder: str) -> UnpackedImage:
    """Raises InfrastructureError if the folder is not such a tree."""
    try:
        data = json.loads(Path(folder, RECORD).read_text())
        return UnpackedImage(**{**data, "python": Interpreter(**data["python"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InfrastructureError(
            f"{folder} is not an unpacked image ({damage(error)}): {HOW_TO_UNPACK}", is_final=True
        ) from None


def tree_binds(folder: str) -> list[str]:
    """The options of bwrap that show the image's files read-only, except the folders that are FRESH."""
    options: list[str] = []
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_symlink():
            options += ["--symlink", os.readlink(entry.path), f"/{entry.name}"]
        elif entry.is_dir() and entry.name not in FRESH:
            options += ["--ro-bind", entry.path, f"/{entry.name}"]
    return options
