"""Brings the images of a run to all its engines, each equal everywhere."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pytest_super.errors import EngineError, InfrastructureError
from pytest_super.kernel.providers.docker.engine import connect, engine_errors, inspect_on
from pytest_super.kernel.providers.docker.image import BUILD_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def send_image(name: str, engines: Sequence[str], print_line: Callable[[str], None]) -> None:
    """Load the image on each engine that lacks it, from the first that has it, or else this machine's.

    If none has it, the trial that needs it reports that. Raises EngineError, and InfrastructureError if two
    engines have different images of the name.
    """
    found = {engine: inspect_on(engine, name) for engine in engines}
    if not any(found.values()):
        # Perhaps no engine runs here.
        with suppress(EngineError):
            found[""] = inspect_on("", name)
    having = [(engine, image) for engine, image in found.items() if image is not None]
    if not having:
        return
    source, image = having[0]
    for engine in engines:
        if (there := found[engine]) is None:
            print_line(f"image {name} ({image['Size'] / 1e6:.0f} MB): sent to {engine}")
            send(name, source, engine)
        elif content_of(there) != content_of(image):
            raise InfrastructureError(
                f"the image {name} is not the same on the engines {source} ({image['Id']}) and {engine} "
                f"({there['Id']}): remove the wrong one, then it is sent there from the other engine"
            )


def content_of(image: Mapping[str, Any]) -> list[Any]:
    """Equal for equal images. Their ids are not, if the engines store images in different ways."""
    config = image["Config"]
    return [image["RootFS"]["Layers"], sorted(config.get("Env") or ()), config.get("Labels") or {}]


def send(name: str, source: str, target: str) -> None:
    """`docker save` and `docker load`. Raises EngineError and InfrastructureError."""
    clients = [connect(source), connect(target)]
    before = [client.timeout for client in clients]
    try:
        for client in clients:
            # It packs or unpacks the whole image before it answers.
            client.timeout = BUILD_SECONDS
        with engine_errors("load an image", target):
            archive = clients[0].get_image(name)
            lines = list(clients[1].load_image(archive) or ())  # type: ignore[no-untyped-call]
    finally:
        for client, seconds in zip(clients, before, strict=True):
            client.timeout = seconds
    if inspect_on(target, name) is None:
        # A name with a digest is lost on the way.
        why = next((line["error"] for line in lines if "error" in line), "it does not know it by this name")
        raise InfrastructureError(f"{target} has not loaded the image {name} ({why}): `docker pull` it there")
