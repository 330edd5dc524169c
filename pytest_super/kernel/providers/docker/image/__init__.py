"""The images that containers run: their recipes, their names, and the build."""

import hashlib
import io
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_super.digests import digest
from pytest_super.errors import InfrastructureError, SuperError
from pytest_super.kernel.providers.docker.engine import SUPER_IMAGE, connect, engine_errors, read_file, tar_of

RECIPE = ("Dockerfile", "requirements.txt")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
# Labels of images that we build. Builds on several machines have different ids, but one recipe. The tag tells
# them from images that are built on top of them, which have the labels too.
BUILT, BUILT_AS = "pytest-super.built", "pytest-super.built-as"
STAGES = {"dangling": True, "label": "pytest-super.image=stage"}
BUILD_SECONDS = 3600

# The profile that puts a kernel on top of another image.
LAYER = "layer"
# The profile of the shipped tasks. The recipe of any other is in a folder of that name.
DEFAULT_PROFILE = "default"

FROM_BASE = "FROM ${BASE}"
_FAILED_STEP = re.compile(r"The command '.*' returned a non-zero code: (\d+)", re.DOTALL)


def recipe(profile: str) -> dict[str, bytes]:
    folder = Path(__file__).parent
    folder = folder if profile == DEFAULT_PROFILE else folder / profile
    return {name: folder.joinpath(name).read_bytes() for name in RECIPE}


# Named by its content, so that an upgrade that changes the recipe does not use the old image.
_DIGEST = hashlib.sha256(b"\0".join(recipe(DEFAULT_PROFILE).values())).hexdigest()
DEFAULT_IMAGE = f"pytest-super-kernel:{_DIGEST[:12]}"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The defaults of a build."""

    base: str | None
    tag: str | None
    packages: tuple[str, ...]
    """The distribution's packages."""


PROFILES = {
    DEFAULT_PROFILE: Profile(base="python:3.11-slim-bookworm", tag=DEFAULT_IMAGE, packages=("git",)),
    "super": Profile(
        base="python:3.10-bookworm",
        tag=SUPER_IMAGE,
        # As in the published environment, except that Java has the distribution's version, and without
        # Jupyter, which would bring a second Python.
        packages=(
            *("build-essential", "ccache", "clang", "cmake", "curl", "default-jdk-headless", "git"),
            *("libreadline-dev", "pkg-config", "sudo", "unzip", "wget", "zlib1g-dev"),
        ),
    ),
    LAYER: Profile(base=None, tag=None, packages=()),
}


def build(
    *,
    profile: str,
    base: str | None,
    tag: str | None,
    packages: Collection[str] | None,
    requirements: Path | None,
    ca_bundle: Path | None,
    pip_config: Path | None,
    network: str | None,
    print_line: Callable[[str], None] = print,
) -> str:
    """Build an image on the engine and print its progress. Returns the tag.

    The profile has the defaults. `requirements`, a list for pip, replaces the profile's and must contain
    ipykernel. `ca_bundle` (PEM) and `pip_config` (a pip.conf) are used by the build and not in the image.
    Raises SuperError for what the profile lacks (a base, a tag, system packages), EngineError when the
    engine does not answer, InfrastructureError when a step of the build fails.
    """
    chosen = PROFILES[profile]
    base, tag = base or chosen.base, tag or chosen.tag
    if base is None or tag is None:
        raise SuperError(
            f"an image of the profile {profile} needs the image below it and a name: --base, --tag"
        )
    if packages and not chosen.packages:
        raise SuperError(f"a {profile} gets no system packages: install them in the image that --base names")
    arguments = {"BASE": base, "PACKAGES": " ".join(chosen.packages if packages is None else packages)}
    own = {"requirements.txt": read_file(requirements)} if requirements else {}
    files = {**recipe(profile), **own}
    name = digest({name: data.hex() for name, data in files.items()})
    labels = {BUILT: digest([name, arguments]), BUILT_AS: tag}
    archive = context(files, ca_bundle, pip_config)
    run_build(tag, arguments, network, print_line, labels=labels, fileobj=archive, custom_context=True)
    return tag


def run_build(
    tag: str,
    arguments: Mapping[str, str],
    network: str | None,
    print_line: Callable[[str], None],
    **given: Any,
) -> None:
    """Build an image and print the progress. Raises EngineError, and InfrastructureError if a step fails."""
    with engine_errors("build the image"):
        events = connect().build(
            tag=tag,
            buildargs={**arguments, **proxies()},
            network_mode=network,
            rm=True,
            forcerm=True,
            decode=True,
            timeout=BUILD_SECONDS,
            **given,
        )
        for line in progress_lines(events):
            print_line(line)
        # The stage that installs packages contains the certificates and pip settings.
        connect().prune_images(filters=STAGES)  # type: ignore[no-untyped-call]


def software_of_image(name: str, image: Mapping[str, Any]) -> str:
    """What tasks find installed in an image: equal for equal recipes, and for equal pulled images."""
    labels = image["Config"].get("Labels") or {}
    if labels.get(BUILT_AS) == name:
        return str(labels[BUILT])
    # Without the name of the registry, which can be a mirror.
    digests = sorted(digest.rpartition("@")[2] for digest in image.get("RepoDigests") or ())
    return str(next(iter([*digests, image["Id"]])))


def context(files: dict[str, bytes], ca_bundle: Path | None, pip_config: Path | None) -> io.BytesIO:
    """The build context as a tar file. Raises InfrastructureError for a file that cannot be read."""
    # The recipe copies both, so they are in the context even when they are empty.
    settings = {
        "ca.pem": read_file(ca_bundle) if ca_bundle else b"",
        "pip.conf": read_file(pip_config) if pip_config else b"",
    }
    return io.BytesIO(tar_of({**files, **settings}))


def proxies() -> dict[str, str]:
    """The proxy settings of this process; the engine keeps these build arguments out of the image."""
    given = {name: os.environ.get(name) or os.environ.get(name.lower()) for name in PROXIES}
    return {name: value for name, value in given.items() if value}


def progress_lines(progress: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The lines of a build's output. Raises InfrastructureError if a step fails."""
    line = ""
    for event in progress:
        if "error" in event:
            # The engine quotes the whole step, which is printed already, as is what the step said last.
            words = _FAILED_STEP.sub(r"a step ended with status \1", event["error"].strip())
            # In our recipes only the base is pulled.
            hint = "; --base names an image that the engine has or can pull" if FROM_BASE in line else ""
            raise InfrastructureError(f"the image was not built: {words}{hint}")
        for line in filter(str.strip, str(event.get("stream", "")).splitlines()):
            yield line
