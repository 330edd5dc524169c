"""The digests in results: what must be equal to compare trials, what is tried, and what is scored."""

import json
from typing import Any

import pytest
import yaml

from tests.integration.conftest import Folder

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
def project(pytester: pytest.Pytester) -> Folder:
    made = Folder(pytester, "super_sandbox = local\n")
    files = {"__init__.py": "", "agents.py": AGENT, "prompt.txt": "Be good."}
    for name, text in files.items():
        made.write(f"mine/{name}", text)
    made.write("code/data.txt", "1 2 3")
    return made


def digests(project: Folder, is_apart: bool = False, **changes: Any) -> dict[str, str]:
    project.write("sum.task.yaml", yaml.safe_dump({**TASK, **changes}))
    run = project.pytester.runpytest_subprocess if is_apart else project.pytester.runpytest
    run("--super-agent=mine.agents:Solver", "sum.task.yaml")
    (row,) = project.rows
    assert row["error"] is None
    return {name: row[name] for name in FIELDS}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    assert all(before.values())
    return {name for name in FIELDS if before[name] != after[name]}


@pytest.mark.slow
def test_what_only_describes_a_task_or_a_run_changes_nothing(project: Folder) -> None:
    before = digests(project)
    after = digests(project, category="data", tags=["new"], metadata={"by": "me"}, solution={"cells": ["42"]})
    assert changed(before, after) == set()
    more = ("--super-epochs=1", "--super-max-cost=5", "--super-dir=elsewhere")
    project.path.joinpath(".super").rename(project.path / "old")
    project.pytester.runpytest("--super-agent=mine.agents:Solver", "sum.task.yaml", *more)
    (row,) = map(json.loads, (project.path / "elsewhere/runs/latest/results.jsonl").read_text().splitlines())
    assert changed(before, {name: row[name] for name in FIELDS}) == set()


@pytest.mark.slow
def test_what_is_around_the_agent_are_conditions(project: Folder) -> None:
    before = digests(project)
    for change in (
        {"query": "Add up all."},
        {"pre_execute": ["x = 2"]},
        {"limits": {"compute": 60}},
        {"limits": {"steps": 60}},
        {"sandbox": {"env": {"A": "1"}}},
    ):
        assert changed(before, digests(project, **change)) == {"conditions"}, change
    project.write("code/data.txt", "1 2 4")
    # A process reads a repository once.
    assert changed(before, digests(project, is_apart=True)) == {"conditions"}


@pytest.mark.slow
def test_what_can_be_mended_is_scoring_and_the_agents_whole_package_is_the_subject(project: Folder) -> None:
    before = digests(project)
    for change in ({"tolerance": 0.1}, {"landmarks": ["done"]}, {"weight": 2.0}):
        assert changed(before, digests(project, **change)) == {"scoring"}, change
    # A data file of the package, which the module may read.
    project.write("mine/prompt.txt", "Be better.")
    assert changed(before, digests(project)) == {"subject"}


SKIP = """
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker("skip")
"""
# By a file that an agent at the top of the project imports: how it does.
SIBLINGS = {
    "tools.py": "import tools",
    "deep/inner.py": "from deep import inner",
    "space/part.py": "import space.part",
    "lazy.py": "def later():\n    import importlib\n    importlib.import_module('lazy')",
    "second.py": "import first",
    "checked/test_tools.py": "from checked.test_tools import value",
}


@pytest.fixture
def siblings(project: Folder) -> Folder:
    """An agent at the top of the project, as the starter has it, with what it imports beside it."""
    for name in SIBLINGS:
        path = project.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("value = 1\n")
    project.write("deep/__init__.py", "")
    project.write("first.py", "def one():\n    from second import value\n    return value\n")
    project.write("agents.py", "\n".join(SIBLINGS.values()) + f"\n{AGENT}")
    project.write("sum.task.yaml", yaml.safe_dump(TASK))
    project.pytester.makeconftest(SKIP)
    return project


def subject(project: Folder, agent: str) -> str:
    """The digest of what an agent is made of. Its task is skipped, so nothing but this is made."""
    done = project.pytester.runpytest_inprocess(f"--super-agent={agent}", "sum.task.yaml")
    done.assert_outcomes(skipped=1)
    facts = json.loads((project.latest / "run.json").read_text())
    return str(facts["subject"]["contents"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "agent", ["agents:Solver", "host-command: python -m agents", "host-command: python agents.py"]
)
def test_every_module_that_an_agent_imports_is_the_subject(siblings: Folder, agent: str) -> None:
    before = subject(siblings, agent)
    for name in SIBLINGS:
        path = siblings.path / name
        path.write_text("value = 2\n")
        assert subject(siblings, agent) != before, name
        path.write_text("value = 1\n")
    assert subject(siblings, agent) == before


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["agents:Solver", "mine.agents:Solver"])
def test_what_an_agent_does_not_import_is_not_the_subject(siblings: Folder, agent: str) -> None:
    before = subject(siblings, agent)
    other = [
        "other.py",
        "test_agents.py",
        "deep/other.py",
        "notes.txt",
        "mine/test_mine.py",
        "mine/conftest.py",
    ]
    for name in other:
        (siblings.path / name).write_text("value = 1\n")
    (siblings.path / "conftest.py").write_text(f"{SKIP}\n# Something else.\n")
    assert subject(siblings, agent) == before


def test_only_where_a_change_can_change_scores_the_version_of_the_metric_differs() -> None:
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

    assert versions(answer="a") == {"accuracy": 1, "submitted": 1, "suspect": 1}
    assert versions(answer={"a": []}) == {"accuracy": 3, "submitted": 1, "suspect": 1}
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

    assert is_alike("a")
    assert not is_alike({"a": {}})


def test_every_field_of_a_task_is_a_condition_or_scoring_or_describes() -> None:
    from pytest_super.session.comparability import CONDITIONS, SCORING
    from pytest_super.tasks.task import Task

    # `functions`, `experiments` and `n` make items, which have what they tell and how they are scored.
    describing = {"id", "category", "solution", "tags", "metadata", "subproblems", "split"}
    items = {"functions", "experiments", "n"}
    conditions = set().union(*CONDITIONS.values())
    assert {*conditions, *SCORING, *describing, *items} == set(Task.model_fields)
    assert not conditions & SCORING
