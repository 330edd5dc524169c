"""The machines of a run share its limits, and each has a file of its own for the calls of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super import platform
from pytest_super.session.machines import calls_file, join, machines, this_machine

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_machines_join_with_their_first_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "runs" / "1"
    assert machines(run) == 1
    controller = this_machine()
    for host_id in ("one", "two", "one"):
        monkeypatch.setattr(platform.host(), "host_id", lambda id=host_id: id)
        join(run)
    assert machines(run) == 2
    assert this_machine() != controller
    assert calls_file(run, this_machine()).name == "calls.jsonl"
    assert calls_file(run, controller).name == f"calls-{this_machine()}.jsonl"
