"""The images that containers run: their recipes, their names, and how they are built."""

from __future__ import annotations

import hashlib
import io
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_super.errors import InfrastructureError, SuperError
from pytest_super.kernel.providers.docker.archive import tar_of
from pytest_super.kernel.providers.docker.engine import SUPER_IMAGE, connect, engine_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from docker import APIClient

RECIPE = ("Dockerfile", "requirements.txt")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
STAGES = {"dangling": True, "label": "pytest-super.image=stage"}


# That of the shipped tasks; the others lie in folders of their names.
DEFAULT_PROFILE = "default"

_FAILED_STEP = re.compile(r"The command '.*' returned a non-zero code: (\d+)", re.DOTALL)
# With what the engine's own lines begin, between those of the steps.
ENGINE_WORDS = ("Step ", "--->", "Removing intermediate container")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def recipe(profile: str = DEFAULT_PROFILE) -> dict[str, bytes]:
    folder = Path(__file__).parent
    folder = folder if profile == DEFAULT_PROFILE else folder / profile
    return {name: folder.joinpath(name).read_bytes() for name in RECIPE}


def recipe_digest() -> str:
    return hashlib.sha256(b"\0".join(recipe().values())).hexdigest()


# Named by its content: after an upgrade that changes the recipe the old image is not taken for the new one.
DEFAULT_IMAGE = f"pytest-super-kernel:{recipe_digest()[:12]}"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What an image is built of unless the person who builds says otherwise."""

    base: str
    tag: str
    packages: tuple[str, ...]
    """Of the system."""


PROFILES = {
    DEFAULT_PROFILE: Profile(base="python:3.11-slim-bookworm", tag=DEFAULT_IMAGE, packages=("git",)),
    "super": Profile(
        base="python:3.10-bookworm",
        tag=SUPER_IMAGE,
        # The published environment's but for its Java, whose version is the distribution's own, and its
        # Jupyter, which would be another Python's.
        packages=(
            *("build-essential", "ccache", "clang", "cmake", "curl", "default-jdk-headless", "git"),
            *("libreadline-dev", "pkg-config", "sudo", "unzip", "wget", "zlib1g-dev"),
        ),
    ),
}


def build(
    *,
    profile: str = DEFAULT_PROFILE,
    base: str | None = None,
    tag: str | None = None,
    packages: Iterable[str] | None = None,
    requirements: Path | None = None,
    ca_bundle: Path | None = None,
    pip_config: Path | None = None,
    network: str | None = None,
    say: Callable[[str], None] = print,
) -> str:
    """Build an image on the engine, hand each line of progress to `say`, give the tag.

    What is not given is that of the profile. `requirements` is a list for pip in place of the profile's;
    it must bring ipykernel. `ca_bundle` (PEM) and `pip_config` (a pip.conf) serve the installation and are
    not in the image.
    Raises EngineError when the engine does not answer, InfrastructureError when a step of the build fails.
    """
    chosen = PROFILES[profile]
    tag = tag or chosen.tag
    arguments = {
        "BASE": base or chosen.base,
        "PACKAGES": " ".join(chosen.packages if packages is None else packages),
    }
    api = connect()
    with engine_errors("build the image"):
        progress = api.build(
            fileobj=context(ca_bundle, pip_config, profile, requirements),
            custom_context=True,
            tag=tag,
            buildargs=arguments | proxies(),
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


def context(
    ca_bundle: Path | None,
    pip_config: Path | None,
    profile: str = DEFAULT_PROFILE,
    requirements: Path | None = None,
) -> io.BytesIO:
    """The build context as a tar file. Raises SuperError for a file that cannot be read."""
    given = {"requirements.txt": given_file(requirements)} if requirements else {}
    files = (
        recipe(profile)
        | given
        | {
            "ca.pem": given_file(ca_bundle) if ca_bundle else b"",
            "pip.conf": given_file(pip_config) if pip_config else b"",
        }
    )
    return io.BytesIO(tar_of(files))


def given_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SuperError(f"{path}: cannot be read: {error.strerror}") from None


def proxies() -> dict[str, str]:
    """The proxy settings of this process; the engine keeps these build arguments out of the image."""
    given = {name: os.environ.get(name) or os.environ.get(name.lower()) for name in PROXIES}
    return {name: value for name, value in given.items() if value}


def progress_lines(progress: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The lines of a build's output; InfrastructureError where it failed, with a step's last words."""
    last = ""
    for event in progress:
        if "error" in event:
            raise InfrastructureError(f"the image was not built: {reason(event['error'], last)}")
        for line in filter(str.strip, str(event.get("stream", "")).splitlines()):
            said = _COLOUR.sub("", line).strip()
            last = said if said and not said.startswith(ENGINE_WORDS) else last
            yield line


def reason(error: str, last: str) -> str:
    """The engine quotes a step that failed in full, which has been printed, and not why it did."""
    words = _FAILED_STEP.sub(r"a step ended with status \1", error.strip())
    return f"{words}: {last}" if last else words


def remove_stages(api: APIClient) -> None:
    """The stage that installs holds the certificates and pip settings: it does not stay on the engine."""
    api.prune_images(filters=STAGES)  # type: ignore[no-untyped-call]
