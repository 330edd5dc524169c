"""The digests in results: what must be equal to compare trials, what is tried, and what is scored."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

AGENT = "class Solver:\n    def run(self, trial):\n        trial.submit(42)\n"
TASK: dict[str, Any] = {
    "id": "sum",
    "set": "expert",
    "query": "Add up.",
    "answer": 42,
    "repository": {"path": "code"},
    "pre_execute": ["x = 1"],
}
FIELDS = ("conditions", "subject", "scoring")


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\nsuper_sandbox = local\npythonpath = .\n")
    pytester.mkpydir("mine")
    pytester.path.joinpath("mine/agents.py").write_text(AGENT)
    pytester.path.joinpath("mine/prompt.txt").write_text("Be good.")
    pytester.mkdir("code").joinpath("data.txt").write_text("1 2 3")
    return pytester


def digests(project: pytest.Pytester, *options: str, **changes: Any) -> dict[str, str]:
    (project.path / "sum.task.yaml").write_text(yaml.safe_dump({**TASK, **changes}))
    # In a process of its own, because the agent's module changes.
    project.runpytest_subprocess("--super-agent=mine.agents:Solver", "sum.task.yaml", *options)
    (row,) = map(json.loads, (project.path / ".super/runs/latest/results.jsonl").read_text().splitlines())
    assert row["error"] is None
    return {name: row[name] for name in FIELDS}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    assert all(before.values())
    return {name for name in FIELDS if before[name] != after[name]}


@pytest.mark.slow
def test_what_only_describes_a_task_or_a_run_changes_nothing(project: pytest.Pytester) -> None:
    before = digests(project)
    described = {"category": "data", "tags": ["new"], "metadata": {"by": "me"}, "solution": {"cells": ["42"]}}
    assert changed(before, digests(project, **described)) == set()
    more = ("--super-epochs=1", "--super-max-cost=5", "--super-dir=elsewhere")
    project.path.joinpath(".super").rename(project.path / "old")
    project.runpytest_subprocess("--super-agent=mine.agents:Solver", "sum.task.yaml", *more)
    (row,) = map(json.loads, (project.path / "elsewhere/runs/latest/results.jsonl").read_text().splitlines())
    assert changed(before, {name: row[name] for name in FIELDS}) == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"query": "Add up all."},
        {"pre_execute": ["x = 2"]},
        {"limits": {"compute": 60}},
        {"sandbox": {"env": {"A": "1"}}},
    ],
    ids=str,
)
def test_what_is_around_the_agent_are_conditions(project: pytest.Pytester, change: dict[str, Any]) -> None:
    assert changed(digests(project), digests(project, **change)) == {"conditions"}


@pytest.mark.slow
def test_the_files_of_a_repository_that_is_a_folder_are_conditions(project: pytest.Pytester) -> None:
    before = digests(project)
    project.path.joinpath("code/data.txt").write_text("1 2 4")
    assert changed(before, digests(project)) == {"conditions"}


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"tolerance": 0.1}, {"landmarks": ["done"]}, {"weight": 2.0}], ids=str)
def test_what_can_be_mended_afterwards_is_scoring(project: pytest.Pytester, change: dict[str, Any]) -> None:
    assert changed(digests(project), digests(project, **change)) == {"scoring"}


@pytest.mark.slow
def test_the_agents_whole_package_is_the_subject(project: pytest.Pytester) -> None:
    before = digests(project)
    # A data file of the package, which the module may read.
    project.path.joinpath("mine/prompt.txt").write_text("Be better.")
    assert changed(before, digests(project)) == {"subject"}


@pytest.mark.slow
def test_a_run_says_what_was_tried(project: pytest.Pytester) -> None:
    project.path.joinpath("script.yaml").write_text("[a]")
    digests(project, "--super-model=scripted:script.yaml", "--super-temperature=0.5")
    subject = json.loads((project.path / ".super/runs/latest/run.json").read_text())["subject"]
    assert subject["agent"] == "mine.agents:Solver"
    assert subject["contents"]
    assert subject["parameters"] == {"temperature": 0.5}


def test_only_where_an_empty_value_can_be_compared_the_version_of_the_metric_differs() -> None:
    from pytest_super.metrics.registry import PAPER, REFERENCE, installed_metrics
    from pytest_super.session.comparability import facts_of_scoring
    from pytest_super.tasks.task import Task

    def versions(mode: str = PAPER, **fields: Any) -> dict[str, int]:
        task = Task.model_validate({"id": "t", "set": "expert", "query": "q", **fields})
        found: dict[str, int] = facts_of_scoring(task, installed_metrics(), mode)["metric_versions"]
        return found

    def grade(expected: Any) -> dict[str, Any]:
        result = [{"json": {"file": "o"}, "expected": expected}]
        return {"grade": {"collect": ["a"], "command": "true", "result": result}}

    assert versions(answer={"a": [1]}) == {"accuracy": 1, "submitted": 1}
    assert versions(answer={"a": []}) == {"accuracy": 2, "submitted": 1}
    assert versions(REFERENCE, answer={"a": []})["accuracy"] == 1
    assert versions(**grade(1))["graded"] == 1
    # In such a result, a further empty value is wrong.
    assert versions(**grade({"a": 1}))["graded"] == 2


def test_scores_of_several_versions_of_a_metric_are_not_compared() -> None:
    from dataclasses import replace

    from pytest_super.metrics.accuracy import ACCURACY
    from pytest_super.metrics.registry import PAPER
    from pytest_super.session.comparability import scoring_of
    from pytest_super.tasks.task import Task

    def is_alike(answer: Any) -> bool:
        task = Task.model_validate({"id": "t", "set": "expert", "query": "q", "answer": answer})
        before = scoring_of(task, [replace(ACCURACY, version=1)], PAPER)
        return before == scoring_of(task, [ACCURACY], PAPER)

    assert is_alike({"a": 1})
    assert not is_alike({"a": {}})


def test_every_field_of_a_task_is_a_condition_or_scoring_or_describes() -> None:
    from pytest_super.session.comparability import CONDITIONS, SCORING
    from pytest_super.tasks.task import Task

    # `functions`, `experiments` and `n` make items, which have what they tell and how they are scored.
    describing = {"id", "category", "solution", "tags", "metadata", "subproblems", "split"}
    items = {"functions", "experiments", "n"}
    assert {*CONDITIONS, *SCORING, *describing, *items} == set(Task.model_fields)
    assert not CONDITIONS & SCORING
