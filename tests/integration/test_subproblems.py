"""Sub-problems as items of a run, and their proof, in real kernels on this machine."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_super.cli import main
from tests.integration.conftest import Project

# Code that is older than its Python, of which an experiment asks two things.
CELLS = [
    "%%writefile tool.py\ndef total(rows):\n    print sum(rows)\n    return sum(rows)\n",
    "rows = [1, 2]",
    "!sed -i 's/print sum(rows)/print(sum(rows))/' tool.py",
    "from tool import total\nfound = total(rows)",
    "{'total': found}",
]
ITEMS: list[dict[str, Any]] = [
    {"id": "sum_issue", "category": "issue", "query": "Mend tool.py.", "mask": [3]},
    {
        "id": "sum_data",
        "category": "data",
        "query": "Make rows.",
        "mask": [2],
        "pre_execute": [{"solution_cell": 1, "files": True}, 3],
        "landmarks": [r"\b3\b"],
    },
]


def expert(*items: dict[str, Any]) -> dict[str, Any]:
    return {"answer": {"total": 3}, "solution": {"cells": CELLS}, "subproblems": list(items)}


@pytest.fixture
def sums(project: Project) -> Project:
    project.add_task("sum", **expert(*ITEMS))
    return project


def names(result: pytest.RunResult) -> set[str]:
    return {line.split("::")[1] for line in result.outlines if "::" in line}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["tasks/sum.task.yaml::sum_data"], {"sum_data"}),
        (["-k", "issue"], {"sum_issue"}),
        (["--super-category=data"], {"sum_data"}),
        (["--super-set=masked"], {"sum_issue", "sum_data"}),
    ],
)
def test_sub_problems_are_chosen_as_other_tasks(
    sums: Project, arguments: list[str], expected: set[str]
) -> None:
    assert names(sums.run("--collect-only", "-q", *arguments)) == expected


def test_the_results_of_a_sub_problem_are_those_of_a_masked_task(sums: Project) -> None:
    sums.run("--super-epochs=2").assert_outcomes(passed=0, failed=6)
    assert len(sums.results) == 6
    row = sums.results["sum_issue[2]"]
    assert (row["set"], row["category"]) == ("masked", "issue")
    assert "accuracy" in row["applicable"]


def test_gold_solves_a_task_and_its_sub_problems(sums: Project) -> None:
    (sums.path / "conftest.py").unlink()
    result = sums.run(agent="gold")
    result.assert_outcomes(passed=3)
    scores = {
        row["id"]: (row["metrics"]["accuracy"], row["metrics"]["landmarks"]) for row in sums.results.values()
    }
    assert scores == {"sum": (1, None), "sum_issue": (1, None), "sum_data": (1, 1)}


@pytest.mark.slow
def test_check_proves_each_sub_problem_and_says_which_it_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sum.task.yaml"
    needless = {"id": "sum_cpu", "category": "cpu", "query": "q", "mask": [1], "pre_execute": [3]}
    path.write_text(
        json.dumps({"id": "sum", "set": "expert", "query": "q", **expert(*ITEMS, needless)}), encoding="utf-8"
    )
    assert main(["mask", "--check", "--sandbox=local", str(path)]) == 1
    issue, data, cpu = capsys.readouterr().out.splitlines()
    assert issue.startswith("sum_issue: proven: with the masked cell 3 the answer is the gold one; without: ")
    assert "cell 4 failed: SyntaxError" in issue
    assert data.startswith("sum_data: proven: ")
    assert cpu.startswith("sum_cpu: not proven: with the masked cells there is no answer (cell 4 failed: ")
