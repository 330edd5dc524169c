"""The two sides of `pytest_super.platform`, each with real processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_super.kernel.conformance.support import until
from pytest_super.kernel.inside.processes import descendants
from pytest_super.platform.linux import Linux
from pytest_super.platform.portable import Portable

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@pytest.fixture(
    params=[pytest.param(Linux(), marks=ON_LINUX, id="linux"), pytest.param(Portable(), id="portable")]
)
def side(request: pytest.FixtureRequest) -> Portable:
    given: Portable = request.param
    return given


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A child with a variable of its own, which it also gives to a child of its own."""
    environment = {**os.environ, "SUPER_TEST_MARK": "a1b2"}
    with subprocess.Popen(["sh", "-c", "sleep 600; :"], env=environment, start_new_session=True) as process:
        yield process
        os.killpg(process.pid, signal.SIGKILL)


def test_a_process_has_a_start_time_until_it_ends(side: Portable, process: subprocess.Popen[bytes]) -> None:
    assert side.start_time(process.pid) is not None
    assert side.start_time(process.pid) == side.start_time(process.pid)
    with subprocess.Popen(["true"]) as ended:
        # Even before it is awaited.
        assert until(lambda: side.start_time(ended.pid) is None)
    assert side.start_time(ended.pid) is None


def test_processes_are_found_by_a_variable_they_started_with(
    side: Portable, process: subprocess.Popen[bytes]
) -> None:
    assert until(lambda: len(side.processes_with("SUPER_TEST_MARK=a1b2")) == 2)
    assert process.pid in side.processes_with("SUPER_TEST_MARK=a1b2")
    assert side.processes_with("SUPER_TEST_MARK=a1b") == set()


def test_a_process_is_listed_with_its_parent_until_it_ends(
    side: Portable, process: subprocess.Popen[bytes]
) -> None:
    assert process.pid in side.children()
    assert until(lambda: len(descendants(process.pid)) == 1)
    assert descendants(process.pid) < descendants(os.getpid())
    process.kill()
    assert until(lambda: process.pid not in descendants(os.getpid()))


def test_a_host_has_one_name_in_all_processes(side: Portable) -> None:
    kind = type(side)
    code = f"from {kind.__module__} import {kind.__name__} as Side; print(Side().host_id())"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == side.host_id()
    assert ":" not in side.host_id()  # it is a part of a label


def test_a_process_can_act_when_its_parent_ends() -> None:
    child = (
        "import os, time; from pytest_super.platform import when_parent_ends\n"
        "when_parent_ends(lambda: os._exit(0)); print('watching', flush=True); time.sleep(600)"
    )
    parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}]).wait()"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"watching\n"
        process.kill()
        # The end of the output, which only the child still holds open.
        assert process.stdout.read() == b""


def test_without_linux_an_orphan_of_a_program_ends_when_pytest_is_killed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    orphan = "(sleep 600 & echo started > ../started)"
    starter = f"""
import os, time
from pytest_super import platform
from pytest_super.programs.host_process import host_program
platform.use_portable()
environment = {{"PATH": os.environ["PATH"], "SUPER_TEST_MARK": "c3d4"}}
with host_program({orphan!r}, {str(tmp_path / "folder")!r}, environment, lambda: None):
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", starter]) as process:
        assert until((tmp_path / "started").exists, seconds=60)
        assert Portable().processes_with("SUPER_TEST_MARK=c3d4")
        process.kill()
    assert until(lambda: not Portable().processes_with("SUPER_TEST_MARK=c3d4"))
    assert until(lambda: not (tmp_path / "folder").exists())
