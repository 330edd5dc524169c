"""Papers in containers: one snapshot of the prefix serves all items, and has no masked function."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from pytest_super.cli import main

if TYPE_CHECKING:
    from docker import APIClient

pytestmark = pytest.mark.docker

ONE = "def one():\n    return 1 + 0\n"
TWO = "def two():\n    return 2 + 0\n"
AGENT = """
class Agent:
    def run(self, trial):
        trial.execute("!cat code/sums.py built.txt; grep -rlE '(1|2) [+] 0' . /tmp /root 2>/dev/null")
        trial.submit(None)
"""


def test_a_new_task_names_the_image_in_which_its_code_ran(
    tmp_path: Path, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code").mkdir()
    (tmp_path / "code/sums.py").write_text("def one():\n    a = 1\n    b = 0\n    return a + b\n")
    (tmp_path / "code/run.py").write_text("import numpy, sums\nprint('sum =', sums.one())\n")
    options = ("--command=python run.py", "--package=numpy", "--sandbox=docker", f"--image={image}")
    assert main(["paper", "new", "code", *options]) == 0
    task = yaml.safe_load((tmp_path / "code.task.yaml").read_text())
    assert task["sandbox"] == {"image": image, "packages": ["numpy"]}


@pytest.mark.long
def test_all_items_start_from_one_prepared_sandbox(
    pytester: pytest.Pytester, image: str, engine: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path / "cache"))
    folder = pytester.mkdir("code")
    (folder / "sums.py").write_text(ONE + "\n\n" + TWO)
    task = {
        "id": "paper",
        "set": "functions",
        "query": "Write them.",
        "repository": {"path": "code", "provide": True},
        "pre_execute": ["!cp code/sums.py built.txt; sleep 2; date +%N >> built.txt"],
        "functions": [
            {"target": f"sums.py::{name}", "sha256": hashlib.sha256(text.encode()).hexdigest()}
            for name, text in (("one", ONE), ("two", TWO))
        ],
        "experiments": [
            {
                "name": "sum",
                "command": "python run.py",
                "result": [{"regex": {"pattern": "sum = (.*)"}, "expected": 3}],
            }
        ],
    }
    (folder / "run.py").write_text("import sums\nprint('sum =', sums.one() + sums.two())\n")
    (pytester.path / "paper.task.yaml").write_text(json.dumps(task))
    pytester.makepyfile(agents=AGENT)
    pytester.makeini(f"[pytest]\npythonpath = .\nsuper_image = {image}\nsuper_sandbox = docker\n")

    pytester.runpytest("--super-agent=gold", "--super-n=1,2", ".").assert_outcomes(passed=3)
    snapshots = list((pytester.path / "cache").rglob("snapshots/*.tar"))
    assert len(snapshots) == 1

    pytester.runpytest("--super-agent=agents:Agent", "--super-n=2", ".").assert_outcomes(failed=1)
    assert list((pytester.path / "cache").rglob("snapshots/*.tar")) == snapshots
    (row,) = (pytester.path / ".super/runs/latest/results.jsonl").read_text().splitlines()
    trajectory = pytester.path / ".super/runs/latest" / json.loads(row)["folder"] / "trajectory.jsonl"
    (shown,) = (
        step["observation"]
        for step in map(json.loads, trajectory.read_text().splitlines())
        if step["origin"] == "agent" and step["action"]["type"] == "execute"
    )
    assert shown.count("this function is masked") == 4
    assert "sums.py" not in shown
    assert engine.containers(all=True, filters={"label": "pytest-super.task=paper_0,1"}) == []
