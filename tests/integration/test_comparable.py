"""What can be compared with a baseline is known before the first trial is paid for."""

import json
from pathlib import Path

import pytest

from tests.integration.conftest import Folder

AGENT = """
class Solver:
    def run(self, trial):
        trial.submit(42)
"""
GATE = ("--super-baseline=baseline", "--super-max-regression=50")
WORKERS = [(), pytest.param(("-n2",), marks=pytest.mark.slow)]
BOTH = pytest.mark.parametrize("workers", WORKERS, ids=["n0", "n2"])


@pytest.fixture
def project(pytester: pytest.Pytester) -> Folder:
    made = Folder(pytester, "super_sandbox = local\n", solver=AGENT)
    for id in "abcd":
        made.add_task(id)
    compared(made)
    made.latest.resolve().rename(made.path / "baseline")
    return made


def compared(project: Folder, *options: str) -> pytest.RunResult:
    return project.pytester.runpytest("--super-agent=solver:Solver", *options)


def trials(project: Folder) -> int:
    return len([*project.path.glob(".super/runs/*/trials/*/*")])


@BOTH
def test_a_run_of_which_too_little_can_be_compared_pays_for_nothing(
    project: Folder, workers: tuple[str, ...]
) -> None:
    for id in "ab":
        project.add_task(id, limits={"compute": 30})
    project.add_task("c", query="Another.")
    before = trials(project)
    run = compared(project, *GATE, *workers)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    text = "\n".join([*run.outlines, *run.errlines])
    assert "only 1 of 4 tasks can be compared with" in text
    assert "other conditions (limits), 2 tasks: a, b" in text
    assert "other conditions (query), 1 task: c" in text
    assert "or select only those 1" in text
    assert trials(project) == before


STOPS = """
import pytest

def pytest_runtest_logstart():
    pytest.exit('enough')

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    terminalreporter.line('the summary')
    return (yield)
"""


@BOTH
def test_what_is_not_compared_is_named_before_the_first_trial(
    project: Folder, workers: tuple[str, ...]
) -> None:
    project.add_task("a", sandbox={"env": {"A": "1"}})
    project.add_task("e")
    project.write("conftest.py", STOPS)
    run = compared(project, *GATE, *workers)
    told = run.outlines.index("not compared: other conditions (sandbox), 1 task: a")
    assert any("not in" in line and line.endswith(": e") for line in run.outlines[told : told + 2])
    assert told < run.outlines.index("the summary")


def conditions(project: Path) -> dict[str, str]:
    rows = map(json.loads, (project / "baseline/results.jsonl").read_text().splitlines())
    return {row["id"]: row["conditions"] for row in rows}


@pytest.mark.slow
def test_each_condition_has_a_digest_of_its_own(project: Folder) -> None:
    parts = dict(part.split("=") for part in conditions(project.path)["a"].split())
    assert [*parts] == ["query", "repository", "prefix", "limits", "sandbox", "paper"]
