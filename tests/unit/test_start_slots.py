"""How many containers start at once: a slot for each, over all processes of a machine."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pytest_super.kernel.providers.docker import start_slots
from pytest_super.kernel.providers.docker.start_slots import start_slot

HOLDER = """
import sys, tempfile
from pytest_super.kernel.providers.docker import start_slots
tempfile.tempdir, start_slots.SLOTS = sys.argv[1], 2
with start_slots.start_slot():
    print("holds", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def two_slots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(start_slots, "SLOTS", 2)


def test_a_start_waits_until_another_process_has_started_or_died(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    holders = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    waits = []

    def look(seconds: float) -> None:
        waits.append(seconds)
        holders[0].kill()
        holders[0].wait()

    monkeypatch.setattr(start_slots, "sleep", look)
    try:
        for holder in holders:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"holds\n"
        with start_slot():
            assert len(waits) == 1
    finally:
        for holder in holders:
            holder.kill()
            holder.communicate()


def test_as_many_start_at_once_as_there_are_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    class WaitsError(Exception): ...

    def look(_: float) -> None:
        raise WaitsError

    monkeypatch.setattr(start_slots, "sleep", look)
    with start_slot():
        with start_slot(), pytest.raises(WaitsError), start_slot():
            pass
        with start_slot():
            pass
