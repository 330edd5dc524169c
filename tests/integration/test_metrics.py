"""Metrics of a project and of a package: column, mean, JUnit XML, results and gate, like those that ship."""

import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_super.metrics.registry import installed_metrics
from tests.integration.conftest import WITH_AND_WITHOUT_XDIST, Project

TEN_LINES = """
from pytest_super.metrics import Metric

def cells(task, evidence):
    return sum(step.action.type == "execute" for step in evidence.steps)

def pytest_super_metrics():
    return [Metric(name="cells", compute=cells, format=".1f", higher_is_better=False)]
"""

FAILING = """
from pytest_super.metrics import Metric

def pytest_super_metrics():
    return [Metric(name="ratio", compute=lambda task, evidence: 1 / 0)]
"""


def properties(element: ET.Element) -> dict[str, str]:
    return {one.get("name", ""): one.get("value", "") for one in element.findall("properties/property")}


@WITH_AND_WITHOUT_XDIST
def test_a_metric_of_ten_lines_in_a_conftest_is_shown_stored_and_gated(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.add_to_conftest(TEN_LINES)
    for id in ("right", "wrong"):
        project.add_task(id)
    gates = ("--super-fail-under=0.5", "--super-fail-under=cells<1.6")
    result = project.run("--junitxml=out.xml", *gates, *workers)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "set * solved * accuracy * submitted * cells * errors",
            "expert * 0.500 * 0.500 * 1.000 * 1.5 * 0",
            "missed  wrong: accuracy 0, cells 1; wrong value; *",
            "gate: passed, mean accuracy 0.5000 is at least 0.5",
            "gate: passed, mean cells 1.5000 is below 1.6",
        ]
    )
    assert {name: row["metrics"]["cells"] for name, row in project.results.items()} == {
        "right[1]": 2.0,
        "wrong[1]": 1.0,
    }
    [suite] = ET.parse(project.path / "out.xml").getroot()
    cases = {case.get("name"): properties(case)["super.cells"] for case in suite.findall("testcase")}
    assert cases == {"right": "2.0", "wrong": "1.0"}
    totals = properties(suite)
    assert (totals["super.cells"], totals["super.expert.cells"]) == ("1.5", "1.5")


def test_an_error_fails_the_gate_of_a_metric_of_which_lower_is_better(project: Project) -> None:
    project.add_to_conftest(TEN_LINES)
    for id in ("right", "engine"):
        project.add_task(id)
    gates = ("--super-fail-under=0.5", "--super-fail-under=cells<9")
    result = project.run("--super-max-errors=1", *gates)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["gate: passed, mean accuracy*", "gate: FAILED, mean cells inf is not below 9"]
    )
    row = project.results["engine[1]"]
    assert (row["metrics"]["cells"], "cells" in row["applicable"]) == (None, True)


def test_a_metric_that_raises_makes_an_error_not_a_miss(project: Project) -> None:
    project.add_to_conftest(FAILING)
    project.add_task("right")
    project.run().assert_outcomes(errors=1)
    row = project.results["right[1]"]
    assert (row["error"], row["solved"]) == ("ZeroDivisionError: division by zero", False)
    assert set(row["metrics"].values()) == {None}


@pytest.mark.parametrize(
    ("conftest", "option", "problem"),
    [
        (TEN_LINES, "cells:1", "*--super-fail-under=cells:1: lower is better: write 'cells<1'*"),
        (
            TEN_LINES,
            "f1:1",
            "*no such figure: choose from accuracy, *, self_report, suspect, cells, *category.NAME*",
        ),
        (TEN_LINES.replace('"cells"', '"tokens"'), "1", "*a metric cannot be named tokens*"),
        (TEN_LINES.replace('"cells"', '"accuracy"'), "1", "*there are 2 metrics named accuracy*"),
    ],
)
def test_what_is_wrong_with_metrics_and_gates_is_one_line_before_anything_runs(
    project: Project, conftest: str, option: str, problem: str
) -> None:
    project.add_to_conftest(conftest)
    project.add_task("right")
    result = project.run(f"--super-fail-under={option}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([problem])
    assert not project.latest.exists()


@pytest.mark.parametrize("name", ["landmarks", "category.cpu"])
def test_a_gate_on_a_figure_that_no_selected_task_has_is_refused_at_once(project: Project, name: str) -> None:
    project.add_task("right", category="data")
    project.add_task("other", landmarks=["x"], category="cpu")
    told = "choose from accuracy, submitted, suspect, cost_per_task, tokens_per_task, category.data"
    result = project.run(f"--super-fail-under={name}:0", "-k", "right")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--super-fail-under: no selected task has {name}: {told}"])
    assert not project.latest.exists()
    assert project.run(f"--super-fail-under={name}:0").ret == 0


def test_a_gate_of_the_ini_file_cannot_tell_of_tasks_that_cannot_have_its_figure(project: Project) -> None:
    project.add_task("right", category="data")
    project.add_task("other", landmarks=["x"], category="cpu")
    line = "gate: cannot tell, no selected task has {}"
    for name in ("landmarks", "category.cpu"):
        ini = f"[pytest]\npythonpath = .\nsuper_fail_under = {name}:2\n"
        project.pytester.makeini(ini)
        for selection in (("-k", "right"), ("--super-category=data", "-kright")):
            result = project.run(*selection)
            assert (result.ret, result.outlines[-1]) == (0, line.format(name))
            assert json.loads((project.latest / "verdict.json").read_text())["verdict"] == "cannot tell"
        result = project.run()
        assert (result.ret, result.outlines[-1].startswith("gate: FAILED, mean ")) == (1, True)


def test_a_gate_of_the_ini_file_that_no_task_of_its_selection_can_have_is_refused(project: Project) -> None:
    project.add_task("right", category="data")
    project.add_task("other", category="cpu", set="masked")
    for gate, also in (("category.dta:0", ""), ("category.cpu:0", "super_set = expert\n")):
        project.pytester.makeini(f"[pytest]\npythonpath = .\n{also}super_fail_under = {gate}\n")
        for selection in ((), ("tasks/right.task.yaml",)):
            result = project.run(*selection)
            assert result.ret == pytest.ExitCode.USAGE_ERROR
            result.stderr.fnmatch_lines([f"*the ini value super_fail_under: no task has {gate[:-2]}: *"])
            assert not project.latest.exists()


@WITH_AND_WITHOUT_XDIST
def test_a_metric_in_a_conftest_that_is_read_too_late_is_refused(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.add_task("right")
    (project.path / "tasks/conftest.py").write_text(TEN_LINES)
    result = project.run(*workers)
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*move it to the one next to the ini file"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
    assert not (project.latest / "results.jsonl").exists()


def install(folder: Path) -> None:
    """A package with a metric, as pip leaves it."""
    (folder / "lengths.py").write_text(
        "from pytest_super.metrics import Metric\n\n"
        "def steps(task, evidence):\n    return len(evidence.steps)\n\n"
        "STEPS = Metric(name='steps_taken', compute=steps, title='steps', format='.0f')\n"
    )
    facts = folder / "lengths-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: lengths\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[pytest_super.metrics]\nsteps_taken = lengths:STEPS\n")


@pytest.fixture
def looked_for_anew() -> Iterator[None]:
    """Metrics of packages, which a process looks for once, but for this test."""
    installed_metrics.cache_clear()
    yield
    installed_metrics.cache_clear()


@pytest.mark.usefixtures("looked_for_anew")
def test_a_metric_of_a_package_is_shown_stored_gated_and_rescored(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(project.path)
    monkeypatch.syspath_prepend(project.path)
    project.add_task("right")
    result = project.run("--super-fail-under=steps_taken:3")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["set * steps * errors", "gate: passed, mean steps_taken 3.0000 is at least 3"]
    )
    done = project.command("rescore", project.latest, "--tasks", "tasks", "--json", "out.json")
    assert done.returncode == 0, done.stderr
    [one] = json.loads((project.path / "out.json").read_text())["trajectories"]
    assert one["scores"]["steps_taken"] == {"published": 3.0, "reference": 3.0, "paper": 3.0}
    assert one["differences"] == {}
    (project.path / "lengths.py").unlink()
    monkeypatch.delitem(sys.modules, "lengths", raising=False)
    installed_metrics.cache_clear()
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*metric `lengths:STEPS` cannot be imported: No module named 'lengths'*"])
