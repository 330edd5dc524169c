"""No attack is open: each is blocked, or the result says that it was tried."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.attacks import trials
from tests.attacks.all import ATTACKS
from tests.attacks.attack import Attack


@pytest.mark.long
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_no_attack_is_open(attack: Attack, tmp_path: Path) -> None:
    missing = [name for name in attack.needs if shutil.which(name) is None]
    if missing and not os.environ.get("CI"):
        pytest.skip(f"there is no {', '.join(missing)}")
    assert attack.run(tmp_path) in ("blocked", "flagged")


@pytest.mark.slow
def test_an_attack_is_ended_by_processor_time_and_not_by_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "SECONDS", 6)
    task = "id: spin\nset: auto\nquery: Spin.\nentrypoint: {path: run.py}\n"
    agent = """
import time
class Agent:
    def run(self, trial):
        time.sleep(6)
        until = time.process_time() + 1
        while time.process_time() < until:
            pass
"""
    files = {"tasks/spin.task.yaml": task, "agent.py": agent}
    [result] = trials.results_of(tmp_path, files, "--super-sandbox=local")
    assert 1 <= result["processor_seconds"] < 6
    files["agent.py"] = agent.replace("+ 1", "+ 9").replace("sleep(6)", "sleep(0)")
    with pytest.raises(RuntimeError, match="no results"):
        trials.results_of(tmp_path / "spins", files, "--super-sandbox=local")
