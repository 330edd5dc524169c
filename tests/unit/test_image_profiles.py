"""The recipes of the images, and what a build passes to the engine."""

import re
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from pytest_super.cli import main
from pytest_super.errors import InfrastructureError
from pytest_super.kernel.providers.docker import image
from pytest_super.kernel.providers.docker.engine import SUPER_IMAGE, engine_errors
from pytest_super.kernel.providers.docker.image import DEFAULT_IMAGE, context, progress_lines, recipe

DOCKERFILE = recipe("super")["Dockerfile"].decode()
REQUIREMENTS = recipe("super")["requirements.txt"].decode().splitlines()


class Engine:
    """Takes what it is asked to build."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}
        self.files: dict[str, bytes] = {}

    def build(self, **asked: Any) -> list[dict[str, str]]:
        self.asked = asked
        with tarfile.open(fileobj=asked["fileobj"]) as archive:
            for entry in archive:
                member = archive.extractfile(entry)
                assert member is not None
                self.files[entry.name] = member.read()
        return [{"stream": "Step 1/1\n"}]

    def prune_images(self, **_: Any) -> None: ...


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    engine = Engine()
    monkeypatch.setattr(image, "connect", lambda: engine)
    return engine


def test_the_profile_decides_recipe_base_packages_and_name(engine: Engine) -> None:
    assert main(["image", "build", "--profile", "super"]) == 0
    assert engine.asked["tag"] == SUPER_IMAGE
    assert engine.asked["buildargs"]["BASE"] == "python:3.10-bookworm"
    assert {"git", "build-essential", "unzip", "wget"} < set(engine.asked["buildargs"]["PACKAGES"].split())
    assert engine.files["Dockerfile"].decode() == DOCKERFILE
    assert main(["image", "build"]) == 0
    assert engine.asked["tag"] == DEFAULT_IMAGE
    assert engine.asked["buildargs"]["PACKAGES"] == "git"
    assert engine.files["Dockerfile"].decode() != DOCKERFILE


def test_what_is_said_goes_before_the_profile(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("ipykernel\n")
    options = f"--base b:1 --tag t:1 --packages '' --requirements {shlex.quote(str(tmp_path / 'list.txt'))}"
    assert main(["image", "build", "--profile", "super", *shlex.split(options)]) == 0
    assert engine.asked["tag"] == "t:1"
    assert engine.asked["buildargs"]["BASE"] == "b:1"
    assert engine.asked["buildargs"]["PACKAGES"] == ""
    assert engine.files["requirements.txt"] == b"ipykernel\n"


def test_system_packages_of_a_layer_are_refused(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["image", "build", "--profile", "layer", "--base", "b:1", "--tag", "t:1", "--packages"]
    assert main([*command, "git"]) == 1
    assert "a layer gets no system packages: install them in the image" in capsys.readouterr().err
    assert engine.asked == {}
    assert main([*command, ""]) == 0


def test_a_list_that_cannot_be_read_is_told_in_one_line(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "none.txt"
    assert main(["image", "build", "--requirements", str(missing)]) == 1
    assert capsys.readouterr().err == f"pytest-super: {missing}: cannot be read: No such file or directory\n"
    assert engine.asked == {}


@pytest.mark.parametrize("profile", image.PROFILES)
def test_certificates_stay_in_the_stage_that_is_dropped(profile: str) -> None:
    first, last = recipe(profile)["Dockerfile"].decode().split("FROM ${BASE}")[-2:]
    assert "ca.pem" in first
    assert "ca.pem" not in last
    assert "pip.conf" not in last


def test_another_python_is_refused_before_anything_is_installed() -> None:
    """The step of the recipe, run by this Python as if it were another."""
    (code,) = re.findall(r'^RUN python3 -c "(.*)"$', DOCKERFILE, re.MULTILINE)
    assert DOCKERFILE.index(code) < DOCKERFILE.index("COPY ")
    for version, expected in (((3, 10, 4), None), ((3, 11, 2), "has 3.11"), ((3, 9, 1), "has 3.9")):
        faked = f"import sys; sys.version_info = {version}; exec({code!r})"
        result = subprocess.run([sys.executable, "-c", faked], capture_output=True, text=True, check=False)
        assert result.returncode == (1 if expected else 0)
        assert (expected or "") in result.stderr
        assert result.stderr.count("\n") == (1 if expected else 0)


def test_every_package_is_pinned_once_and_the_kernel_is_there() -> None:
    lines = [line for line in REQUIREMENTS if line and not line.startswith(("#", "--"))]
    names = [re.split(r"==| @ ", line)[0].lower() for line in lines]
    assert all(
        re.fullmatch(r"[\w.-]+==[\w.]+|[\w-]+ @ https://\S+#sha256=[0-9a-f]{64}", line) for line in lines
    )
    assert len(set(names)) == len(names)
    assert "ipykernel" in names


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("The command '/bin/sh -c pip' returned a non-zero code: 1", "a step ended with status 1"),
        ("no space left\n", "no space left"),
    ],
)
def test_a_failed_step_is_told_without_its_text(error: str, message: str) -> None:
    lines = progress_lines([{"stream": "Step 1/2\n\nwords\n"}, {"status": "pulling"}, {"error": error}])
    assert [next(lines), next(lines)] == ["Step 1/2", "words"]
    with pytest.raises(InfrastructureError) as caught:
        next(lines)
    assert str(caught.value) == f"the image was not built: {message}"


def test_a_base_that_cannot_be_pulled_is_told_with_the_option_for_another() -> None:
    step = {"stream": "Step 2/17 : FROM ${BASE} AS build\n"}
    with pytest.raises(InfrastructureError, match="no such host; --base names an image"):
        list(progress_lines([step, {"error": "no such host"}]))
    with pytest.raises(InfrastructureError, match=r"no space left$"):
        list(progress_lines([step, {"stream": "Step 3/17 : COPY a b\n"}, {"error": "no space left"}]))


def test_a_run_without_the_image_is_told_what_makes_it() -> None:
    from docker.errors import ImageNotFound

    words = "pytest-super image build --profile super"
    with pytest.raises(InfrastructureError, match=words), engine_errors("x", image=SUPER_IMAGE):
        raise ImageNotFound("none")


def test_the_context_holds_what_the_recipe_copies(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"certificates")
    with tarfile.open(fileobj=context(recipe("super"), tmp_path / "ca.pem", None)) as archive:
        sizes = {entry.name: entry.size for entry in archive}
    copied = {
        name
        for names in re.findall(r"^COPY (?!--)(.*) \S+$", DOCKERFILE, re.MULTILINE)
        for name in names.split()
    }
    assert copied <= set(sizes)
    assert (sizes["ca.pem"], sizes["pip.conf"]) == (len(b"certificates"), 0)
