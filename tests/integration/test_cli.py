"""`pytest-super …` as a person types it."""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from pytest_super.cli import COMMANDS, main, parser
from pytest_super.tasks.loading import load_tasks
from tests.conftest import TaskFolder

VALID = "id: a\nset: expert\nquery: do it\nanswer: 1\n"
SHIPPED = Path(__file__).parents[2] / "tasks"


@cache
def shipped_tasks() -> int:
    """How many there are; a file holds more than one where it has sub-problems."""
    return sum(len(load_tasks(path)) for path in SHIPPED.glob("*.task.yaml"))


def test_each_command_is_listed_with_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = capsys.readouterr().out
    # The others are for programs and maintainers.
    found = re.findall(r"^    ([a-z-]+)\s+\w", listed, re.MULTILINE)
    assert found == [name for name in COMMANDS if name not in ("trial", "prompt")]


def options(
    parser: argparse.ArgumentParser, *words: str
) -> Iterator[tuple[tuple[str, ...], argparse.Action]]:
    """Each option with the words of its command."""
    for action in parser._actions:
        if not action.option_strings and isinstance(action.choices, dict):
            for name, command in action.choices.items():
                yield from options(command, *words, name)
        elif action.option_strings and action.nargs != 0:
            yield words, action


@pytest.mark.parametrize(
    ("words", "action"), [pytest.param(*one, id=" ".join(one[0])) for one in options(parser())]
)
def test_an_option_that_is_given_twice_is_repeatable_or_refused(
    words: tuple[str, ...], action: argparse.Action, capsys: pytest.CaptureFixture[str]
) -> None:
    flag = action.option_strings[-1]
    typed = {"KEY=VALUE": "temperature=1", "CHANCE": "0.5"}.get(str(action.metavar), "1")
    value = str(next(iter(action.choices))) if action.choices else typed
    with pytest.raises(SystemExit) as ended:
        # For the end of those that can be repeated: `--help` would end before a second value is refused.
        parser(words[:1]).parse_args([*words, flag, value, flag, value, "--help"])
    told = capsys.readouterr()
    if isinstance(action, argparse._AppendAction):
        assert (ended.value.code, told.err) == (0, "")
    else:
        assert ended.value.code == 2
        assert f"{flag} is given twice, but has one value" in told.err


def test_the_version_is_that_of_the_installed_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"pytest-super {version('pytest-super')}\n"


def test_a_command_imports_no_other_command_and_nothing_that_it_does_not_need() -> None:
    code = "import sys; from pytest_super.cli import main; main(['trial', 'task']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert {name for name in modules if name.startswith("pytest_super.commands.")} == {
        "pytest_super.commands.trial"
    }
    heavy = {"pytest", "yaml", "pydantic", "docker", "jupyter_client", "zmq", "litellm", "requests"}
    assert not heavy & modules


def test_validate_tells_every_error_of_every_file(folder: TaskFolder) -> None:
    folder.add_task("a")
    folder.add_task("a", file="c")
    folder.write("tasks/b.task.yaml", "id: b\nset: expert\nquery: 1\nanswer: 1\ntyop: 2\n")
    done = folder.command("validate", "tasks")
    assert done.returncode == 1
    assert "tasks/b.task.yaml:3:8: `query`" in done.stdout
    assert "tasks/b.task.yaml:5:1: unknown field `tyop`" in done.stdout
    assert "tasks/c.task.yaml:1:1: the id `a` already appears at tasks/a.task.yaml:1" in done.stdout


# Texts of a task file that would clear the screen and show an error of another file.
FORGED = "\x1b[2J\nother.task.yaml:1:1: forged \u202e\x9b1m\r"
FORGERIES: list[dict[str, Any]] = [
    {FORGED: 1},
    {"limits": {FORGED: 1}},
    {"id": FORGED},
    {"set": FORGED},
    {"sandbox": {"memory": FORGED}},
    {"solution": {"notebook": FORGED}},
    {"repository": {"path": FORGED}},
    {"landmarks": ["(?P<" + FORGED]},
    {
        "solution": {"cells": ["1"]},
        "subproblems": [{"id": "b", "category": "data", "query": "q", "mask": [FORGED]}],
    },
]


def test_no_text_of_a_task_file_controls_the_terminal_or_begins_a_line(folder: TaskFolder) -> None:
    for number, fields in enumerate(FORGERIES):
        folder.add_task(**{"id": f"a{number}", "file": f"a{number}", **fields})
    done = folder.command("validate", "tasks")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert {line.partition(".")[0] for line in lines} == {f"tasks/a{n}" for n in range(len(FORGERIES))}
    assert all(re.match(r"tasks/a\d\.task\.yaml:1:", line) and line.isprintable() for line in lines)


def test_validate_counts_what_is_valid_and_says_when_there_is_nothing(folder: TaskFolder) -> None:
    files = len(list(SHIPPED.glob("*.task.yaml")))
    valid = f"{shipped_tasks()} tasks in {files} files: valid\n"
    assert folder.command("validate", SHIPPED).stdout == valid
    done = folder.command("validate", ".")
    assert done.returncode == 1
    assert "there is no *.task.yaml file" in done.stderr


def test_validate_warns_of_numbers_for_which_0_is_right(folder: TaskFolder) -> None:
    path = "a.task.yaml"
    folder.write(
        path,
        "id: other\nset: expert\nquery: q\nanswer: {loss: 0.02, none: 0.0, label: 0, rounded: 1.0e-16}\n---\n"
        "id: a\nset: expert\nquery: q\nanswer: {loss: [0.004, -0.01], epochs: 3, text: '0.004', yes: true}\n"
        "grade:\n  collect: [a.py]\n  command: 'true'\n  result:\n"
        "    - {json: {file: o}, expected: {p: 0.004, n: 1}, abs: 0.05}\n"
        "    - {json: {file: o}, expected: 0.004, rel: 0.5}\n---\n"
        "id: fine\nset: expert\nquery: q\nanswer: {loss: 0.004, k: 1}\ntolerance: 0.001\n---\n"
        "id: wide\nset: expert\nquery: q\nanswer: {share: 0.5, label: 1}\ntolerance: 1\n",
    )
    *warnings, count = folder.command("validate", path).stdout.splitlines()
    assert count == "4 tasks in 1 file: valid"
    what_to_do = "so state a smaller one, or ask for the value in another unit"
    assert warnings == [
        f"{path}:{line}: warning: `{place}` is {value}, and 0 is right as well: `{field}` is {allowed}, "
        f"{what_to_do}"
        for line, place, value, field, allowed in [
            (6, "answer.loss[0]", "0.004", "tolerance", "0.01"),
            (6, "answer.loss[1]", "-0.01", "tolerance", "0.01"),
            (6, "grade.result[0].expected.p", "0.004", "abs", "0.05"),
            (23, "answer.share", "0.5", "tolerance", "1"),
        ]
    ]


# Configurations of pytest.
CONFIGURED = [
    ("pytest.ini", "[pytest]\n"),
    ("pyproject.toml", "[tool.pytest.ini_options]\nminversion = '8'\n"),
    ("tox.ini", "[pytest]\nminversion = 8\n"),
    ("setup.cfg", "[tool:pytest]\nminversion = 8\n"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        (*CONFIGURED[0], "above"),
        (*CONFIGURED[1], "above a project"),
        ("pyproject.toml", "[project]\nname = 'mine'\n", "inside"),
    ],
)
def test_what_init_says_is_true_in_any_project(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    text: str,
    place: str,
) -> None:
    child = tmp_path / "parent" / "a child"
    child.mkdir(parents=True)
    (child if place == "inside" else child.parent).joinpath(name).write_text(text)
    if place == "above a project":
        (child / "tox.ini").write_text("[tox]\nenvlist = py\n")
        (child / "pyproject.toml").write_text("[project]\nname = 'mine'\n")
    monkeypatch.chdir(tmp_path)
    assert main(["init", "parent/a child"]) == 0
    commands = re.findall("(?:now run|then): +(.*)", capsys.readouterr().out)
    # They are typed into one shell. Listing the tasks imports the agent, too.
    listing = f"{shlex.quote(sys.executable)} -m pytest --collect-only -q "
    typed = "\n".join(commands).replace("pytest ", listing)
    listed = subprocess.run(typed, shell=True, capture_output=True, text=True)
    assert listed.stdout.count("::") == len(commands) == 2, listed.stderr


@pytest.mark.parametrize(("marked", "place", "inside"), [("", "..", "a child"), ("other", ".", ".")])
def test_the_ci_file_of_init_is_where_github_looks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marked: str, place: str, inside: str
) -> None:
    folder = tmp_path / "a child"
    for path in (tmp_path / marked / ".git", folder):
        path.mkdir(parents=True)
    monkeypatch.chdir(folder)
    assert main(["init"]) == 0
    job = yaml.safe_load((folder / place / ".github/workflows/agent.yml").read_text())["jobs"]["tasks"]
    assert job["steps"][-1]["with"]["working-directory"] == inside


def test_init_adds_the_shipped_tasks_to_a_project(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path)]) == 0
    (tmp_path / "agents.py").write_text("mine")
    assert main(["init", "--tasks", str(tmp_path)]) == 0
    written = [task for path in tmp_path.glob("tasks/*.task.yaml") for task in load_tasks(path)]
    assert len(written) == shipped_tasks() + 1
    assert (tmp_path / "agents.py").read_text() == "mine"


@pytest.mark.parametrize(("name", "text"), CONFIGURED)
def test_init_adds_no_configuration_to_a_folder_that_has_one(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert main(["init", str(tmp_path)]) == 0
    assert (tmp_path / "pytest.ini").exists() == (name == "pytest.ini")


def test_init_changes_no_file_that_exists_and_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("conftest.py").write_text("mine")
    assert main(["init"]) == 0
    assert "\nconftest.py exists and is unchanged\n" in capsys.readouterr().out
    assert Path("conftest.py").read_text() == "mine"
    assert main(["init", "conftest.py"]) == 1
    assert "conftest.py/agents.py cannot be written: " in capsys.readouterr().err


def test_every_fixture_of_the_starter_conftest_can_be_uncommented(pytester: pytest.Pytester) -> None:
    text = (files("pytest_super") / "authoring/starter/project/conftest.py.txt").read_text()
    code = "\n".join(line.removeprefix("# ") for line in text.splitlines())
    pytester.makeconftest(code)
    (pytester.path / "a.task.yaml").write_text(
        "id: a\nset: expert\nquery: list\nanswer: {files: [notes.txt]}\n"
    )
    result = pytester.runpytest("--super-agent=gold", "--super-sandbox=local", "a.task.yaml")
    result.assert_outcomes(passed=1)


def test_the_schema_that_ships_is_that_of_the_models(capsys: pytest.CaptureFixture[str]) -> None:
    main(["schema"])
    # As JSON: versions of pydantic write a whole number as 0 or as 0.0.
    shipped = (files("pytest_super") / "tasks/task.schema.json").read_text()
    assert json.loads(capsys.readouterr().out) == json.loads(shipped)


def test_a_reader_that_ends_early_is_no_error_to_complain_about() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    code = "import sys; from pytest_super.cli import main; sys.exit(main(['schema']))"
    done = subprocess.run([sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_the_schema_accepts_the_shipped_tasks_and_knows_mistakes() -> None:
    schema = json.loads((files("pytest_super") / "tasks/task.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    for path in SHIPPED.glob("*.task.yaml"):
        for task in yaml.safe_load_all(path.read_text()):
            validator.validate(task)
    assert not validator.is_valid({"id": "a", "set": "expert", "query": "x", "tyop": 1})
