"""The docs are right: examples are valid, and all options, fields and hooks that exist are described."""

import argparse
import ast
import inspect
import json
import re
import shlex
import shutil
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pytest_super import hookspecs
from pytest_super.cli import parse
from pytest_super.kernel.cell import Outcome
from pytest_super.metrics import Evidence, Metric, Spent
from pytest_super.metrics.accuracy import accuracy
from pytest_super.metrics.matching import landmark_matcher
from pytest_super.options import OPTIONS
from pytest_super.store.results import TrialResult
from pytest_super.store.trajectory import Step
from pytest_super.tasks import grade, loading, paper, task, yaml_reader
from pytest_super.tasks.fields import FieldModel
from pytest_super.tasks.sandbox_spec import SandboxSpec
from tests.pages import BLOCKS, PAGES, ROOT, Block, blocks_in, page_path
from tests.result_table import with_table


def page(name: str) -> str:
    return page_path(name).read_text(encoding="utf-8")


def section(name: str, title: str) -> str:
    """The text of a page from a heading to the next of the same or a higher level."""
    rest = page(name).split(f"\n{title}\n")[1]
    level = title.index(" ")
    return re.split(rf"^#{{1,{level}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if not re.match(r"\|[-|]+$", line)
    ]


def names_in(text: str) -> set[str]:
    """The names formatted as code in the first column of the tables of `text`."""
    return {name for row in rows(text) for name in re.findall(r"`([^`]+)`", row[0])}


# Examples


@pytest.mark.parametrize("block", blocks_in("yaml"))
def test_each_task_file_is_valid(block: Block, tmp_path: Path) -> None:
    # Some examples refer to the notebook or the folder of another task.
    for tasks in ("tasks", "pytest_super/authoring/starter/project/tasks"):
        shutil.copytree(ROOT / tasks, tmp_path, ignore=shutil.ignore_patterns("*.yaml"), dirs_exist_ok=True)
    path = tmp_path / "example.task.yaml"
    path.write_text(block.text, encoding="utf-8")
    assert loading.load_tasks(path)


@pytest.mark.parametrize("block", blocks_in("python"))
def test_each_python_example_is_python(block: Block) -> None:
    assert ast.parse(block.text).body


def test_each_command_line_of_ours_is_one() -> None:
    lines = {line for block in BLOCKS if block.language == "console" for line in block.text.splitlines()}
    for line in lines:
        words = shlex.split(line.removeprefix("$ ").partition(" > ")[0])
        if words[0] == "pytest-super":
            print(line)  # The last one shown is the wrong one.
            assert isinstance(parse(words[1:]), argparse.Namespace)


@pytest.mark.parametrize("mark", ["main-job", "tests"])
def test_a_command_that_machines_read_from_the_readme_is_one_line(mark: str) -> None:
    (block,) = [block for block in BLOCKS if block.page == "README.md" and block.mark == mark]
    assert re.fullmatch(r"\$ .+\n", block.text)


# Options and commands


def test_every_option_that_the_pages_name_exists() -> None:
    named = {
        flag
        for path in PAGES
        for flag in re.findall(r"--super-[a-z][a-z-]*", path.read_text(encoding="utf-8"))
    }
    assert named <= {option.flag for option in OPTIONS}


def test_every_option_says_what_its_value_is() -> None:
    assert [one.flag for one in OPTIONS if not (one.metavar or one.choices or one.is_flag)] == []


def test_every_option_is_described_with_its_default_and_its_choices() -> None:
    table = rows(section("options.md", "## Options"))
    described = {re.split("[=`]", row[0].strip("`"))[0]: row for row in table}
    for option in OPTIONS:
        assert option.key == option.flag.removeprefix("--").replace("-", "_")
        _, default, meaning = described[option.flag]
        assert option.default is None or default == f"`{option.default}`"
        assert all(f"`{choice}`" in meaning for choice in option.choices or ())


# The task file

SECTIONS = {
    task.Task: "## Fields of a task",
    task.Repository: "## repository",
    task.Entrypoint: "## entrypoint",
    task.PreExecuted: "## pre_execute",
    task.Solution: "## solution",
    task.SubProblem: "## subproblems",
    SandboxSpec: "## sandbox",
    task.Limits: "## limits",
}


@pytest.mark.parametrize("model", SECTIONS, ids=lambda model: model.__name__)
def test_the_fields_of_the_task_file_are_described(model: type[FieldModel]) -> None:
    assert names_in(section("task-format.md", SECTIONS[model])) == set(model.model_fields)


GRADE_SECTIONS = {
    grade.Grade: "## grade",
    grade.Check: "## result",
    grade.JsonValue: "### json",
    grade.RegexValue: "### regex",
}


@pytest.mark.parametrize("model", GRADE_SECTIONS, ids=lambda model: model.__name__)
def test_the_fields_of_a_grader_are_described(model: type[FieldModel]) -> None:
    described = section("grading.md", GRADE_SECTIONS[model]).partition("\n### ")[0]
    assert names_in(described) == set(loading.fields_of(model))


PAPER_SECTIONS = {
    paper.PaperText: "### paper",
    paper.MaskableFunction: "### functions",
    paper.Experiment: "### experiments",
}


@pytest.mark.parametrize("model", PAPER_SECTIONS, ids=lambda model: model.__name__)
def test_the_fields_of_a_paper_are_described(model: type[FieldModel]) -> None:
    assert names_in(section("papers.md", PAPER_SECTIONS[model])) == set(model.model_fields)


def test_every_part_of_an_edit_is_described() -> None:
    text = section("task-format.md", "## pre_execute")
    assert all(f"`{name}`" in text for name in task.Edit.model_fields)


@pytest.mark.parametrize("model", [task.Task, task.Entrypoint, task.Limits], ids=lambda model: model.__name__)
def test_defaults_that_are_numbers_are_right(model: type[FieldModel]) -> None:
    described = {row[0]: row[2] for row in rows(section("task-format.md", SECTIONS[model]))}
    for name, field in model.model_fields.items():
        if isinstance(field.default, float):
            assert described[f"`{name}`"] == f"`{field.default:g}`"


def test_limits_in_words_are_right() -> None:
    assert f"at most {yaml_reader.MAX_BYTES // 2**20} MiB" in page("task-format.md")
    assert f"{yaml_reader.MAX_NODES:,} keys and values" in page("task-format.md")
    assert f"more than {yaml_reader.MAX_VALUES:,} values" in page("task-format.md")
    assert all(
        f"`{tokens}`" in section("task-format.md", "## limits") for tokens in task.TOKEN_BUDGETS.values()
    )
    text = section("metrics.md", "## landmarks")
    assert f"{landmark_matcher.WINDOW:,} characters" in text
    assert f"{8 * landmark_matcher.WINDOW:,} characters" in text
    assert f"{landmark_matcher.TIME_LIMIT:g} seconds of processor time" in text


# Results, metrics, hooks


@pytest.mark.parametrize(
    ("name", "title", "kinds"),
    [
        ("results.md", "### results.jsonl", [TrialResult]),
        ("results.md", "### trajectory.jsonl", [Step]),
        ("metrics.md", "### A metric", [Metric]),
        ("metrics.md", "### Evidence", [Evidence, Spent]),
    ],
)
def test_the_fields_of_what_users_read_are_described(name: str, title: str, kinds: list[Any]) -> None:
    assert names_in(section(name, title)) == {field.name for kind in kinds for field in fields(kind)}


def test_the_table_of_a_results_fields_is_made_of_their_declarations() -> None:
    assert page("results.md") == with_table(page("results.md")), "run python -m tests.result_table"


def test_every_outcome_is_described() -> None:
    assert all(f"`{outcome}`" in section("results.md", "### trajectory.jsonl") for outcome in Outcome)


def test_the_examples_of_accuracy_are_right() -> None:
    examples = rows(section("metrics.md", "## accuracy"))[1:]
    assert examples
    for gold, submission, expected in examples:
        assert accuracy(json.loads(gold.strip("`")), json.loads(submission.strip("`"))) == float(expected)


def test_every_hook_is_described_with_its_arguments() -> None:
    hooks = inspect.getmembers(hookspecs, inspect.isfunction)
    assert {name for name in names_in(page("hooks.md")) if name.startswith("pytest_super_")} == {
        name for name, _ in hooks
    }
    for name, hook in hooks:
        assert f"`{name}({', '.join(inspect.signature(hook).parameters)})`" in section(
            "hooks.md", f"## {name}"
        )


# The project


def test_links_to_files_lead_somewhere() -> None:
    for path in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), (path, target)


def test_the_packages_of_the_shipped_tasks_are_in_the_extra_and_in_the_image() -> None:
    tasks = [task for path in (ROOT / "tasks").glob("*.task.yaml") for task in loading.load_tasks(path)]
    packages = {package for task in tasks for package in task.sandbox.packages}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert packages == set(project["optional-dependencies"]["tasks"])
    image = ROOT / "pytest_super/kernel/providers/docker/image/requirements.txt"
    assert packages <= set(image.read_text(encoding="utf-8").splitlines())


def test_the_lowest_versions_are_those_that_the_package_allows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    lowest = (ROOT / "requirements" / "lowest.txt").read_text(encoding="utf-8")
    # Without the versions that are excluded.
    assert sorted(requirement.split(",")[0].replace(">=", "==") for requirement in required) == sorted(
        line for line in lowest.splitlines() if not line.startswith("#")
    )


@pytest.mark.parametrize(
    ("file", "extras"),
    [("ci.txt", ("tasks", "test", "mcp", "browser", "lint", "docs")), ("ci-main-job.txt", ("tasks",))],
)
def test_the_lock_files_have_what_pyproject_requires(file: str, extras: tuple[str, ...]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    required = [*project["dependencies"], *(each for extra in extras for each in optional[extra])]
    text = (ROOT / "requirements" / file).read_text(encoding="utf-8")
    locked = dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))
    for requirement in map(Requirement, required):
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), requirement
    # An index can be a private one.
    assert "://" not in text


@pytest.mark.parametrize("version", ["1.82.7", "1.82.8"])
def test_versions_of_litellm_that_stole_credentials_are_not_installed(version: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (litellm,) = (each for each in map(Requirement, project["dependencies"]) if each.name == "litellm")
    assert not litellm.specifier.contains(version)


def test_the_tests_that_hold_a_promise_exist() -> None:
    tests = set(re.findall(r"`([\w/]+\.py)::(\w+)`", page("reliability.md")))
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file, _ in tests}
    assert {(file, name) for file, name in tests if f"def {name}(" not in texts[file]} == set()
    assert len(tests) > 80
