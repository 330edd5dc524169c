"""Commands that read a stored run, on a disk that is full: one message, and the old files stay whole."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.integration.stored_runs import Stored, contents

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")

FULL = "No space left on device"


@pytest.fixture(params=[0, 6], ids=["full", "six_pages"])
def bench(request: pytest.FixtureRequest, paid: Stored, tmp_path: Path) -> Iterator[Stored]:
    """Its stored run and its baseline are on a disk that has so many pages left. An answer was mended."""
    made = paid.copy(tmp_path / "project")
    folder = made.path / ".super"
    folder.rename(made.path / "stored")
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], check=True)
    try:
        shutil.copytree(made.path / "stored", folder, symlinks=True, dirs_exist_ok=True)
        assert made.command("baseline", "update", str(made.latest), f"--file={folder}/b.json").returncode == 0
        made.add("wrong")
        fill(folder / "filler", free=request.param)
        yield made
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(path: Path, *, free: int) -> None:
    """Leave so many pages of the disk free."""
    with path.open("wb", buffering=0) as file:
        with suppress(OSError):
            while True:
                file.write(bytes(4096))
        file.truncate(max(0, file.tell() - 4096 * free))


def stored(bench: Stored) -> dict[str, str]:
    return contents(bench.latest) | {"baseline": (bench.path / ".super/b.json").read_text()}


def test_a_run_that_is_scored_again_leaves_nothing_behind(bench: Stored) -> None:
    before, names = stored(bench), sorted(os.listdir(bench.runs))
    done = bench.rescore()
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert FULL in done.stderr
    assert stored(bench) == before
    assert sorted(os.listdir(bench.runs)) == names


def test_a_baseline_stays_as_it_was(bench: Stored) -> None:
    fill(bench.path / ".super/more", free=0)
    before = stored(bench)
    done = bench.command("baseline", "update", str(bench.latest), "--file=.super/b.json")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert FULL in done.stderr
    assert stored(bench) == before


def test_a_resumed_run_ends_with_one_message(
    bench: Stored, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, first = stored(bench), bench.latest
    monkeypatch.chdir(bench.path)
    done = pytester.runpytest("--super-agent=mine:Agent", "--super-dir=.super", "--super-resume=latest", ".")
    text = f"{done.stdout}{done.stderr}"
    assert done.ret != pytest.ExitCode.OK
    assert FULL in text
    assert "INTERNALERROR" not in text
    assert "Traceback" not in text
    assert contents(first) | {"baseline": before["baseline"]} == before
