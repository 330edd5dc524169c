"""An image as a folder: how it is written, and what bubblewrap sandboxes that start from it must do."""

# mypy: disable-error-code="no-redef"
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from pytest_super.cli import main
from pytest_super.errors import InfrastructureError
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance import *  # noqa: F403
from pytest_super.kernel.conformance.support import printed, started
from pytest_super.kernel.providers.bubblewrap import BubblewrapSandbox
from pytest_super.kernel.providers.docker.image import unpack as unpacking
from pytest_super.kernel.providers.docker.image.unpack import unpack
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.kernel.providers.registry import find_provider
from pytest_super.kernel.providers.unpacked_image import RECORD, image_in
from pytest_super.kernel.sandbox import Sandbox, SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec
from tests.kernel.test_bubblewrap import REASON, inhabitants

pytestmark = [
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.skipif(bool(REASON) and "CI" not in os.environ, reason=REASON or ""),
]


@pytest.fixture(scope="module")
def sandbox_factory(unpacked: Path) -> Callable[[SandboxSpec], BubblewrapSandbox]:
    return lambda spec: BubblewrapSandbox(spec, SandboxSettings(image=str(unpacked)))


@pytest.fixture
def remains() -> Callable[[Sandbox], list[str]]:
    return lambda sandbox: inhabitants(getattr(sandbox, "folder", Path()))


def test_code_finds_the_images_software_and_nothing_of_the_host(shared_kernel: Kernel, image: str) -> None:
    with started(DockerSandbox(SandboxSpec(), SandboxSettings(image=image))) as other:
        for command in (
            "!pip list --format=freeze",
            "!python --version; git --version",
            "!cat /etc/os-release",
        ):
            assert printed(shared_kernel, command) == printed(other, command) != ""
    for path in (sys.prefix, str(Path(__file__).parents[2])):
        assert printed(shared_kernel, f"import os; print(os.path.exists({path!r}))") == "False\n", path


def test_results_name_the_same_software_as_in_containers_and_another_sandbox(
    unpacked: Path, image: str
) -> None:
    of_folder = BubblewrapSandbox(SandboxSpec(), SandboxSettings(image=str(unpacked)))
    container = DockerSandbox(SandboxSpec(), SandboxSettings(image=image))
    assert of_folder.software == container.software
    assert (of_folder.name, container.name) == ("bubblewrap", "docker")


def test_the_image_cannot_be_written_and_own_folders_are_fresh(shared_kernel: Kernel, unpacked: Path) -> None:
    for path in ("/usr/bin/x", "/etc/x", "/etc/passwd", "/opt/kernel/x", "/x"):
        assert "Read-only file system" in shared_kernel.execute(f"open({path!r}, 'w')", timeout=30).detail
    for folder in ("/workspace", "/home/sandbox", "/tmp", "/var/tmp", "/venv"):
        printed(shared_kernel, f"open('{folder}/written', 'w').close()")
    assert list(unpacked.rglob("written")) == []


def test_the_same_image_is_not_written_again_and_another_one_is_refused(
    unpacked: Path, image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record = unpacked / RECORD
    text, before = record.read_text(), record.stat()
    assert main(["image", "build", "--tag", image, "--unpack", str(unpacked)]) == 0
    assert capsys.readouterr().out.endswith(f"unpacked {image} in {unpacked}\n")
    assert record.stat() == before
    try:
        record.write_text(text.replace('"sha256:', '"sha256:of-another-'))
        image_in.cache_clear()
        with pytest.raises(InfrastructureError, match=r"has the image .*of-another.*: name another folder"):
            unpack(image, unpacked)
    finally:
        record.write_text(text)
        image_in.cache_clear()


def test_what_was_not_finished_is_never_taken_for_an_image(
    tmp_path: Path, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(_: Iterable[bytes], folder: Path) -> None:
        (folder / "usr").mkdir()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(unpacking, "extract", break_off)
    with pytest.raises(InfrastructureError, match="No space left"):
        unpack(image, tmp_path / "image")
    assert list(tmp_path.iterdir()) == []
    # As a process leaves it that is killed.
    (tmp_path / "image/usr").mkdir(parents=True)
    monkeypatch.setattr(unpacking, "extract", lambda *_: None)
    with pytest.raises(InfrastructureError, match=r"image cannot be written: .*Directory not empty"):
        unpack(image, tmp_path / "image")
    reason = find_provider("bubblewrap").why_unprepared(SandboxSettings(image=str(tmp_path / "image")))
    assert "is not an unpacked image" in str(reason)
