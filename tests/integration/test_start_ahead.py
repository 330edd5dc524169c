"""A trial's sandbox starts while the trial before it runs."""

import os
from pathlib import Path

import pytest

from tests.integration.conftest import Project

CONFTEST = """
from pytest_super.kernel.providers.local import LocalSandbox

class Noted(LocalSandbox):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def open(self):
        with open("life.txt", "a") as file:
            print("open", self.name, file=file)
        return super().open()

    def close(self):
        super().close()
        with open("life.txt", "a") as file:
            print("close", self.name, file=file)

def pytest_super_make_sandbox(task):
    return Noted(task.id)
"""
AGENT = """
import time
from pathlib import Path

class Agent:
    def run(self, trial):
        life = Path("life.txt")
        turn = life.read_text().count("close") + 1
        while life.read_text().count("open") < min(turn + 1, 3):
            time.sleep(0.02)
        trial.execute("made = 'x' in globals()\\nx = 1")
        trial.execute("print(made)")
        trial.submit("True" in trial.history[-1].observation)
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    made = Project(pytester, "timeout = 60\n", conftest=CONFTEST, agent=AGENT)
    for n in (1, 2, 3):
        made.add_task(f"task{n}", answer=False, limits={"compute": 60})
    return made


def life(folder: Path) -> list[str]:
    return (folder / "life.txt").read_text().splitlines()


def test_each_trial_begins_in_a_fresh_kernel_that_was_started_before(project: Project) -> None:
    # The agent would wait for ever otherwise.
    project.run("-n1").assert_outcomes(passed=3)
    opened = [line for line in life(project.path) if line.startswith("open")]
    assert sorted(opened) == ["open task1", "open task2", "open task3"]


@pytest.mark.slow
def test_a_sandbox_that_no_trial_came_to_is_closed(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandboxes = tmp_path / "sandboxes"
    sandboxes.mkdir()
    monkeypatch.setenv("TMPDIR", os.fspath(sandboxes))
    (project.path / "agent.py").write_text(AGENT.replace("trial.submit(", "trial.submit('wrong' or "))
    project.run_in_subprocess("-x").assert_outcomes(failed=1)
    assert sorted(life(project.path)[-2:]) == ["close task1", "close task2"]
    assert not [*sandboxes.glob("super-*")]
