"""The sandboxes of a Harbor task: what they require, and the images that they start from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_super.digests import digest, tree_of
from pytest_super.kernel.providers.docker.image import LAYER, recipe

if TYPE_CHECKING:
    from pytest_super.authoring.importing.harbor.settings import TaskSettings

DOCKERFILE = "Dockerfile"
COMPOSE = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml")
_WORKDIR = re.compile(r"^\s*WORKDIR\s+(\S+)", re.IGNORECASE)
_STAGE = re.compile(r"^\s*FROM\s", re.IGNORECASE)
# Keys that a sandbox of ours has no counterpart of.
_NOT_OFFERED = ("healthcheck", "tpus", "skills_dir", "env_file")


@dataclass(frozen=True, kw_only=True)
class HarborImage:
    """An image with a kernel on top: of a folder with a Dockerfile, or of another image."""

    folder: Path | None
    base: str | None

    @property
    def name(self) -> str:
        """Of its content, so that an image that is there need not be built again."""
        files = {name: data.hex() for name, data in recipe(LAYER).items()}
        content = tree_of(self.folder) if self.folder else self.base
        return f"pytest-super-harbor:{digest([content, files])[:12]}"


def image_of(settings: TaskSettings, table: str, folder: Path, shown: str) -> HarborImage | None:
    """The image that a table and the folder next to it describe; None if they describe none.

    A folder with a compose file is a reason why the task cannot be used.
    """
    settings.reasons.extend(
        f"{shown}/{name}: several containers (compose) cannot be used"
        for name in COMPOSE
        if (folder / name).exists()
    )
    # As in Harbor, a prebuilt image comes before a Dockerfile.
    base = settings.text(f"{table}.docker_image")
    if base:
        return HarborImage(folder=None, base=base)
    return HarborImage(folder=folder, base=None) if (folder / DOCKERFILE).is_file() else None


def sandbox_of(settings: TaskSettings, table: str) -> dict[str, Any]:
    """The fields of `sandbox` that an environment's table states."""
    for key in _NOT_OFFERED:
        if settings.get(f"{table}.{key}", object):
            settings.remark(f"{table}.{key}", "is not used: sandboxes do not have it")
    if settings.get(f"{table}.mcp_servers", list):
        settings.refuse(f"{table}.mcp_servers", "names hosted tools, which cannot be used")
    if (system := settings.text(f"{table}.os")) not in (None, "linux"):
        settings.refuse(f"{table}.os", f"is {system}: only Linux can be used")
    fields = {
        "cpus": settings.number(f"{table}.cpus"),
        "memory": size_of(settings, table, "memory"),
        "disk": size_of(settings, table, "storage"),
        "gpus": settings.get(f"{table}.gpus", int) or None,
        "env": settings.variables(f"{table}.env"),
        "network": network_of(settings, table),
    }
    return {name: value for name, value in fields.items() if value not in (None, {})}


def size_of(settings: TaskSettings, table: str, what: str) -> str | None:
    """`memory_mb`, or its old spelling: `memory = "2G"`."""
    if (megabytes := settings.number(f"{table}.{what}_mb")) is not None:
        return f"{int(megabytes)}m"
    text = settings.text(f"{table}.{what}")
    return text.lower().removesuffix("b").removesuffix("i") if text else None


def network_of(settings: TaskSettings, table: str) -> bool | None:
    """None if the table says nothing."""
    mode = settings.text(f"{table}.network_mode")
    if mode is None:
        allowed: bool | None = settings.get(f"{table}.allow_internet", bool)
        return allowed
    if mode not in ("public", "no-network"):
        settings.remark(
            f"{table}.network_mode", f"is {mode}, which is not offered: the whole network is there"
        )
    return mode != "no-network"


def workdir_of(settings: TaskSettings, image: HarborImage, table: str) -> str | None:
    """The working directory that an image has, as far as its table or its Dockerfile says so."""
    if stated := settings.text(f"{table}.workdir"):
        return stated
    if image.folder is None:
        return None
    path: PurePosixPath | None = None
    for line in (image.folder / DOCKERFILE).read_text(encoding="utf-8", errors="replace").splitlines():
        if _STAGE.match(line):
            path = None
        elif found := _WORKDIR.match(line):
            path = PurePosixPath("/") / (path or "/") / found[1].strip("\"'")
    return str(path) if path and "$" not in str(path) else None
