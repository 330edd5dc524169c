"""What can be compared with a baseline is known before the first trial is paid for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

# pytester forgets what a run has imported, and numpy refuses to be imported twice.
import scipy.special  # noqa: F401

from tests.integration.conftest import Project

if TYPE_CHECKING:
    from pathlib import Path

AGENT = """
class Solver:
    def run(self, trial):
        trial.submit(42)
"""
GATE = ("--super-baseline=baseline", "--super-max-regression=50")
BOTH = pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n2",), marks=pytest.mark.slow)], ids=["n0", "n2"]
)


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    made = Project(pytester)
    made.write("solver.py", AGENT)
    for id in "abcd":
        made.add_task(id)
    made.run(agent="solver:Solver")
    (pytester.path / ".super/runs/latest").resolve().rename(pytester.path / "baseline")
    return made


def compared(project: Project, *options: str) -> pytest.RunResult:
    return project.run(*GATE, *options, agent="solver:Solver")


def trials(project: Project) -> int:
    return len([*project.path.glob(".super/runs/*/trials/*/*")])


@BOTH
def test_a_run_of_which_too_little_can_be_compared_pays_for_nothing(
    project: Project, workers: tuple[str, ...]
) -> None:
    for id in "ab":
        project.add_task(id, limits={"compute": 30})
    project.add_task("c", query="Another.")
    before = trials(project)
    run = compared(project, *workers)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    text = "\n".join([*run.outlines, *run.errlines])
    assert "only 1 of 4 tasks can be compared with" in text
    assert "2 tasks other conditions (limits): a, b" in text
    assert "1 task other conditions (query): c" in text
    assert "--super-min-compared=0" in text
    assert trials(project) == before


@BOTH
def test_what_is_not_compared_is_named_before_the_first_trial(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.add_task("a", sandbox={"env": {"A": "1"}})
    project.add_task("e")
    run = compared(project, *workers)
    told = run.outlines.index("not compared: 1 task other conditions (sandbox): a")
    assert any("not in" in line and line.endswith(": e") for line in run.outlines[told : told + 2])
    assert told < next(n for n, line in enumerate(run.outlines) if "super" in line and "====" in line)


def test_the_share_that_must_be_compared_can_be_stated(project: Project) -> None:
    project.add_task("a", pre_execute=["x = 1"])
    assert compared(project, "--super-min-compared=0.9").ret == pytest.ExitCode.USAGE_ERROR
    assert compared(project, "--super-min-compared=0.75").ret == pytest.ExitCode.OK


def conditions(project: Path) -> dict[str, str]:
    rows = map(json.loads, (project / "baseline/results.jsonl").read_text().splitlines())
    return {row["id"]: row["conditions"] for row in rows}


def test_each_condition_has_a_digest_of_its_own(project: Project) -> None:
    parts = dict(part.split("=") for part in conditions(project.path)["a"].split())
    assert [*parts] == ["query", "repository", "prefix", "limits", "sandbox", "paper"]
