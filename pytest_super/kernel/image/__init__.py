"""The kernel image: its recipe, its name, and how it is built."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.engine import connect, engine_errors
from pytest_super.kernel.environment import trusted_certificates

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction
    from collections.abc import Callable, Iterable, Iterator

    from docker import APIClient

DEFAULT_BASE = "python:3.11-slim-bookworm"
RECIPE = ("Dockerfile", "requirements.txt")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
STAGES = {"dangling": True, "label": "pytest-super.image=stage"}


def recipe() -> dict[str, bytes]:
    folder = Path(__file__).parent
    return {name: folder.joinpath(name).read_bytes() for name in RECIPE}


def recipe_digest() -> str:
    return hashlib.sha256(b"\0".join(recipe().values())).hexdigest()


# Named by its content: after an upgrade that changes the recipe the old image is not taken for the new one.
DEFAULT_IMAGE = f"pytest-super-kernel:{recipe_digest()[:12]}"


def build(
    *,
    base: str = DEFAULT_BASE,
    tag: str = DEFAULT_IMAGE,
    packages: Iterable[str] = ("git",),
    ca_bundle: Path | None = None,
    pip_config: Path | None = None,
    network: str | None = None,
    say: Callable[[str], None] = print,
) -> str:
    """Build the kernel image from `base` on the engine, hand each line of progress to `say`, give the tag.

    `ca_bundle` (PEM) and `pip_config` (a pip.conf) serve the installation and are not in the image.
    Raises EngineError when the engine does not answer, InfrastructureError when a step of the build fails.
    """
    api = connect()
    with engine_errors("build the image"):
        progress = api.build(
            fileobj=context(ca_bundle, pip_config),
            custom_context=True,
            tag=tag,
            buildargs={"BASE": base, "PACKAGES": " ".join(packages), **proxies()},
            network_mode=network,
            rm=True,
            forcerm=True,
            decode=True,
            timeout=3600,
        )
        for line in progress_lines(progress):
            say(line)
        remove_stages(api)
    return tag


def context(ca_bundle: Path | None, pip_config: Path | None) -> io.BytesIO:
    """The build context as a tar file."""
    files = recipe() | {
        "ca.pem": ca_bundle.read_bytes() if ca_bundle else b"",
        "pip.conf": pip_config.read_bytes() if pip_config else b"",
    }
    return io.BytesIO(tar_of(files))


def tar_of(files: dict[str, bytes]) -> bytes:
    """A tar archive of `files` (path: content), readable by everybody inside."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def proxies() -> dict[str, str]:
    """The proxy settings of this process; the engine keeps these build arguments out of the image."""
    given = {name: os.environ.get(name) or os.environ.get(name.lower()) for name in PROXIES}
    return {name: value for name, value in given.items() if value}


def progress_lines(progress: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The lines of a build's output; InfrastructureError with the engine's words where it failed."""
    for event in progress:
        if "error" in event:
            raise InfrastructureError(f"the image was not built: {event['error'].strip()}")
        yield from filter(str.strip, str(event.get("stream", "")).splitlines())


def remove_stages(api: APIClient) -> None:
    """The stage that installs holds the certificates and pip settings: it does not stay on the engine."""
    api.prune_images(filters=STAGES)  # type: ignore[no-untyped-call]


def add_image_parser(subparsers: _SubParsersAction[ArgumentParser]) -> None:
    """Add `image build` to the command line; its namespace carries `run`, a function of the namespace."""
    image = subparsers.add_parser("image", help="the kernel image that containers run")
    commands = image.add_subparsers(required=True, metavar="COMMAND")
    parser = commands.add_parser("build", help="build the kernel image on the container engine")
    parser.add_argument(
        "--base", default=DEFAULT_BASE, help="Debian-like image with python3 (default: %(default)s)"
    )
    parser.add_argument("--tag", default=DEFAULT_IMAGE, help="name of the image (default: %(default)s)")
    parser.add_argument(
        "--packages", default="git", help="system packages, separated by blanks (default: %(default)s)"
    )
    parser.add_argument(
        "--ca-bundle",
        type=Path,
        default=trusted_certificates(os.environ),
        help="certificates (PEM) to reach the package index with (default: what REQUESTS_CA_BUNDLE or "
        "SSL_CERT_FILE names)",
    )
    parser.add_argument("--pip-config", type=Path, help="a pip.conf, for an index of your own")
    parser.add_argument("--network", help="the engine's network to build on, such as host")
    parser.set_defaults(run=run_build)


def run_build(arguments: Namespace) -> int:
    tag = build(
        base=arguments.base,
        tag=arguments.tag,
        packages=arguments.packages.split(),
        ca_bundle=arguments.ca_bundle,
        pip_config=arguments.pip_config,
        network=arguments.network,
    )
    print(f"built {tag}")
    return 0
