"""Trials that an earlier run has paid for are taken over, and not run again."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import WITH_AND_WITHOUT_XDIST, Folder
from tests.waiting import until

# Notes each trial that really runs, solves `a`, and can wait.
AGENT = """
import os, time
from pathlib import Path

import tools

class Agent:
    def run(self, trial):
        with open(Path(__file__).with_name("ran.txt"), "a") as file:
            file.write(trial.task.id + " ")
        trial.execute("1 + 1")
        while Path(__file__).with_name("wait").exists() and trial.task.id == "b":
            time.sleep(0.05)
        trial.submit(42 if trial.task.id == "a" else 0)
"""


# What the project itself does around a trial fails.
BROKEN = """
from pathlib import Path

def pytest_super_trial_finished(result):
    if Path(__file__).with_name("broken").exists() and result.id == "a":
        raise ValueError("broken")
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> Folder:
    made = Folder(pytester, "super_sandbox = local\n", mine=AGENT, tools="")
    for id in ("a", "b"):
        add(made, id)
    return made


def add(project: Folder, id: str, **changes: Any) -> None:
    project.write(f"{id}.task.yaml", task_file(id, **changes))


def task_file(id: str, **changes: Any) -> str:
    return json.dumps({"id": id, "set": "expert", "query": "What is it?", "answer": 42, **changes})


OPTIONS = ("--super-agent=mine:Agent", ".")
COMMAND = (sys.executable, "-m", "pytest", *OPTIONS)


def run(project: Folder, *options: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """The run, and the tasks that really ran."""
    project.write("ran.txt", "")
    ended = project.pytester.runpytest(*OPTIONS, *options)
    ran = subprocess.CompletedProcess(options, int(ended.ret), str(ended.stdout), str(ended.stderr))
    return ran, " ".join(sorted(ran_file(project).split()))


def results(project: Folder) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in project.rows}


@pytest.mark.slow
def test_only_new_trials_run_and_the_others_keep_their_outcome(project: Folder) -> None:
    _, ran = run(project)
    assert ran == "a b"
    first = project.latest.resolve()
    add(project, "c")
    again, ran = run(project, "--super-resume=latest")
    assert ran == "c"
    assert again.returncode == pytest.ExitCode.TESTS_FAILED
    assert f"2 trials reused from {first.name}" in again.stdout
    assert "2 failed, 1 passed" in again.stdout
    found = results(project)
    assert {id: (row["solved"], row["resumed_from"]) for id, row in found.items()} == {
        "a": (True, first.name),
        "b": (False, first.name),
        "c": (False, ""),
    }
    # The new run has the files of all its trials.
    folder = project.latest / found["a"]["folder"]
    assert {path.name for path in folder.iterdir()} >= {"trajectory.jsonl", "trajectory.ipynb", "result.json"}


def test_a_killed_run_goes_on(project: Folder) -> None:
    (project.path / "wait").touch()
    with subprocess.Popen(COMMAND, cwd=project.path, stdout=subprocess.DEVNULL) as process:
        until(lambda: "b" in ran_file(project))
        process.send_signal(signal.SIGKILL)
    (project.path / "wait").unlink()
    _, ran = run(project, "--super-resume=latest")
    assert ran == "b"
    assert results(project)["a"]["solved"]


@pytest.mark.slow
@WITH_AND_WITHOUT_XDIST
def test_a_resumed_run_that_is_killed_early_has_all_trials(project: Folder, workers: tuple[str, ...]) -> None:
    for id in ("c", "d"):
        add(project, id)
    run(project)
    first = project.latest.resolve()
    add(project, "b", query="Is it?")
    (project.path / "wait").touch()
    project.write("ran.txt", "")
    command = [*COMMAND, "--super-resume=latest", *workers]
    with subprocess.Popen(command, cwd=project.path, stdout=subprocess.DEVNULL) as process:
        until(lambda: "b" in ran_file(project))
        process.send_signal(signal.SIGKILL)
    killed = project.latest.resolve()
    assert killed != first
    shutil.rmtree(first)
    (project.path / "wait").unlink()
    again, ran = run(project, "--super-resume=latest", *workers)
    assert ran == "b"
    assert f"resume: 3 trials reused from {killed.name}, 1 trial to run: " in again.stdout
    assert {id: row["resumed_from"] for id, row in results(project).items()} == {
        **dict.fromkeys("acd", first.name),
        "b": "",
    }


@pytest.mark.slow
@WITH_AND_WITHOUT_XDIST
def test_ctrl_c_prints_the_command_line_that_goes_on(project: Folder, workers: tuple[str, ...]) -> None:
    (project.path / "wait").touch()
    with subprocess.Popen(
        [*COMMAND, "-k", "a or b", *workers], cwd=project.path, stdout=subprocess.PIPE, text=True
    ) as process:
        until(lambda: "b" in ran_file(project) and trials_that_ended(project) == ["a"])
        process.send_signal(signal.SIGINT)
        output = process.communicate()[0]
    (line,) = [line for line in output.splitlines() if line.startswith("to go on: ")]
    (project.path / "wait").unlink()
    project.write("ran.txt", "")
    command = line.removeprefix("to go on: ")
    assert "-k 'a or b'" in command
    path = {**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
    again = subprocess.run(
        ["sh", "-c", command], cwd=project.path, env=path, text=True, capture_output=True, check=False
    )
    assert ran_file(project).split() == ["b"]
    # It has ended, so there is nothing to go on with.
    assert "to go on" not in again.stdout


def latest(project: Folder) -> str:
    return project.latest.resolve().name


def trials_that_ended(project: Folder) -> list[str]:
    results = project.latest / "results.jsonl"
    lines = results.read_text().splitlines() if results.exists() else []
    return [json.loads(line)["id"] for line in lines]


def ran_file(project: Folder) -> str:
    path: Path = project.path / "ran.txt"
    return path.read_text() if path.exists() else ""


def test_a_run_that_is_not_there_is_one_message(project: Folder) -> None:
    ran, _ = run(project, "--super-resume=nowhere")
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--super-resume=nowhere: there is no run" in ran.stderr


HOOK = "from mine import Agent\n\ndef pytest_super_make_agent(name):\n    return Agent()\n"
FIXTURE = "import pytest\nfrom mine import Agent\n\n@pytest.fixture\ndef super_agent():\n    return Agent()\n"
UNKNOWN = "a fixture, a hook or --super-mount takes part, whose changes cannot be noticed (2)"
CODE = "the subject differs: code of the agent: changed (2)"
# What is written, the options, what then runs, and why.
CHANGES: list[tuple[dict[str, str], list[str], str, str]] = [
    ({"mine.py": AGENT + "\n# better\n"}, [], "a b", CODE),
    ({"tools.py": "# better"}, [], "a b", CODE),
    ({"conftest.py": HOOK}, [], "a b", UNKNOWN),
    ({"conftest.py": FIXTURE}, [], "a b", UNKNOWN),
    ({}, ["--super-mount=/tmp:/data"], "a b", UNKNOWN),
    (
        {},
        ["--super-temperature=0.5"],
        "a b",
        "the subject differs: parameters: {} -> {'temperature': 0.5} (2)",
    ),
    ({"a.task.yaml": task_file("a", query="Is it?")}, [], "a", "the conditions differ (1)"),
    ({"a.task.yaml": task_file("a", tolerance=0.5)}, [], "a", "the scoring differs (1)"),
    # Only the second epoch.
    ({}, ["--super-epochs=2"], "a b", "nothing valid is stored (2)"),
]


@pytest.mark.slow
def test_what_changed_runs_again(project: Folder) -> None:
    run(project)
    first = latest(project)
    for written, options, runs, reason in CHANGES:
        before = {name: (project.path / name).read_text() for name in written if name != "conftest.py"}
        for name, text in written.items():
            (project.path / name).write_text(text)
        again, ran = run(project, f"--super-resume={first}", *options)
        assert ran == runs, (written, options)
        (line,) = re.findall(r"resume: .* to run: (.*)", again.stdout)
        assert line == reason
        # Before the first trial.
        assert again.stdout.index("resume: ") < again.stdout.index("a.task.yaml ")
        (project.path / "conftest.py").unlink(missing_ok=True)
        for name, text in before.items():
            (project.path / name).write_text(text)


@pytest.mark.slow
def test_errors_run_again_and_what_is_skipped_is_not_taken_over(project: Folder) -> None:
    project.pytester.makeconftest(BROKEN)
    (project.path / "broken").touch()
    run(project)
    assert results(project)["a"]["error"]
    (project.path / "broken").unlink()
    again, ran = run(project, "--super-resume=latest")
    assert ran == "a"
    assert "1 trial to run: nothing valid is stored (1)" in again.stdout
    project.pytester.makeconftest(
        "import pytest\n\ndef pytest_collection_modifyitems(items):\n    items[0].add_marker('skip')\n"
    )
    run(project, "--super-resume=latest")
    assert set(results(project)) == {"b"}


@pytest.mark.slow
def test_a_result_of_wrong_types_is_one_message(project: Folder) -> None:
    run(project)
    damaged = latest(project)
    path = project.latest / "results.jsonl"
    first, *others = path.read_text().splitlines()
    wrong: list[dict[str, Any]] = [
        {"folder": 5},
        {"metrics": {"accuracy": 10**400}},
        {"metrics": "x"},
        {"solved": "yes"},
    ]
    texts = ['{"id": [], "set": 1}', *(json.dumps({**json.loads(first), **one}) for one in wrong)]
    for text in texts:
        path.write_text("\n".join([text, *others, ""]))
        workers = ["-n1"] if text == texts[1] else []
        again, ran = run(project, "--super-resume=latest", *workers)
        assert (again.returncode, ran) == (pytest.ExitCode.USAGE_ERROR, "")
        assert "cannot be read" in again.stderr
        assert "Traceback" not in again.stderr
        # The folder of a run that has not begun is none of a run.
        assert latest(project) == damaged
    # No line of an earlier run ends a later one.
    path.write_text(
        "\n".join([first, *others, "[]", "5", "[" * 100_000, json.dumps({**json.loads(first), "id": []}), ""])
    )
    again, _ = run(project)
    assert again.returncode == pytest.ExitCode.TESTS_FAILED
    assert "INTERNALERROR" not in again.stdout + again.stderr
