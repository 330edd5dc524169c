"""No attack is open: each is blocked, or the result says that it was tried."""

import os
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from tests.attacks import functions, graders, sandboxes, trials


@pytest.mark.long
@pytest.mark.parametrize("table", [graders, functions], ids=["graders", "functions"])
def test_no_attack_is_open(table: ModuleType, tmp_path: Path) -> None:
    found = trials.outcomes_of(table.tasks(), table.FILES, tmp_path, table.SECONDS)
    assert [name for name, outcome in found.items() if outcome == "open"] == []
    # Only what else an agent writes into the files of functions is graded a second time.
    assert table is functions or set(found.values()) == {"blocked"}


@pytest.mark.long
@pytest.mark.parametrize("kind", sandboxes.KINDS)
def test_no_attack_from_inside_bubblewrap_is_open(kind: str) -> None:
    if shutil.which("bwrap") is None and not os.environ.get("CI"):
        pytest.skip("there is no bwrap")
    found = sandboxes.outcomes_as(kind)
    assert [name for name, outcome in found.items() if outcome == "open"] == []


@pytest.mark.slow
def test_an_attack_is_ended_by_processor_time_and_not_by_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "SECONDS", 5)
    task = "id: spin\nset: auto\nquery: Spin.\nentrypoint: {path: run.py}\n"
    agent = """
import time
class Agent:
    def run(self, trial):
        time.sleep(4)
        until = time.process_time() + 1
        while time.process_time() < until:
            pass
"""
    files = {"tasks/spin.task.yaml": task, "agent.py": agent}
    [result] = trials.results_of(tmp_path, files, "--super-sandbox=local")
    assert 1 <= result["processor_seconds"] < 5
    files["agent.py"] = agent.replace("+ 1", "+ 9").replace("sleep(4)", "sleep(0)")
    with pytest.raises(RuntimeError, match="no results"):
        trials.results_of(tmp_path / "spins", files, "--super-sandbox=local")
