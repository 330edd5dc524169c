"""Tasks with a grader: what comes out of the agent's sandbox, and what a second sandbox makes of it."""

import json
import sys
import tarfile
from fnmatch import fnmatch
from typing import Any

import pytest

from tests.integration.conftest import Folder

# The agent's part is `mean`, which the hidden test and the command use.
MODEL = "def mean(values):\n    raise NotImplementedError\n"
RIGHT = "def mean(values):\n    return sum(values) / len(values)\n"
RUN = """\
import json, sys
from model import mean
print("first value = 7.0")
print("value =", mean([1, 2, 3]))
json.dump({"mean": mean([1.0, 2.0]), "all": [mean([1]), mean([2])]}, open("out.json", "w"))
sys.exit(3)
"""
HIDDEN = """\
from model import mean

def test_mean():
    assert mean([4, 6]) == 5

def test_one():
    assert mean([1]) == 1
"""
TEST = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python -m pytest -q --rootdir=. --junitxml=report.xml tests"
GRADE: dict[str, Any] = {
    "collect": ["model.py"],
    "files": {"tests/test_model.py": "hidden/model.py"},
    "command": f"{TEST}; python run.py",
    "timeout": 60,
    "result": [
        {"exit": 3},
        {"junit": "report.xml"},
        {"json": {"file": "out.json", "pointer": "/mean"}, "expected": 1.5, "rel": 0.01},
        {"json": {"file": "out.json", "pointer": "/all"}, "expected": [1, 2]},
        {"name": "value", "regex": {"pattern": "value = (.*)"}, "interval": [1.9, 2.1]},
    ],
}
# What an agent named in a task's id does before it submits.
AGENT = """
import time

RIGHT = {right!r}

class Agent:
    def run(self, trial):
        if trial.task.id == "busy":
            trial.execute("import _thread; _thread.start_new_thread(exec, ('while True: pass',))")
            time.sleep(3)
            return trial.submit(None)
        if trial.task.id == "waits":
            trial.execute("import time; time.sleep(600)")
            return trial.submit(None)
        cells = {{
            "right": f"open('project/model.py', 'w').write({{RIGHT!r}})",
            "nothing": "1",
            "elsewhere": "open('project/run.py', 'w').write('import sys; sys.exit(3)'); open('new.txt', 'w')",
            "plants": "import os; os.makedirs('project/tests'); "
                "open('project/tests/test_model.py', 'w').write('def test(): pass'); "
                "open('project/out.json', 'w').write('{{\\"mean\\": 1.5, \\"all\\": [1, 2]}}'); "
                "open('project/report.xml', 'w').write('<testcase/>')",
            "exits": "open('project/model.py', 'w').write('import os; os._exit(3)')",
            "hangs": "open('project/model.py', 'w').write('import time; time.sleep(600)')",
            "link": "import os; os.remove('project/model.py'); os.symlink('/etc/passwd', 'project/model.py')",
            "compiles": "import sys, py_compile as p; open('mine.py', 'w').write('def mean(_): return 2.0'); "
                "p.compile('mine.py', f'project/__pycache__/model.{{sys.implementation.cache_tag}}.pyc', "
                "invalidation_mode=p.PycInvalidationMode.UNCHECKED_HASH)",
            "removes": "import os; os.remove('project/model.py')",
            "huge": "open('project/model.py', 'w').truncate(2**40)",
            "folder": "import os; os.makedirs('project/model.py/a/b'); open('project/model.py/a/b/c', 'w')",
            "file": "import shutil; shutil.rmtree('project/lib'); open('project/lib', 'w')",
            "parent": "open('project/tests', 'w')",
            "deep": "import os; os.makedirs('project/lib/d'); os.chdir('project/lib/d'); "
                "[(os.mkdir('d'), os.chdir('d')) for _ in range(1200)]; open('a', 'w')",
            "lost": "import os; os.kill(os.getppid(), 9)",
            "large": "[open(f'project/{{n}}', 'w').write('x' * 1_000_000) for n in range(3)]",
            "integer": "open('project/model.py', 'w').write('9' * 400)",
            "encoding": "open('project/model.py', 'w').write('"
                "<?xml version=\\"1.0\\" encoding=\\"x\\"?><a/>')",
        }}
        trial.execute(cells[trial.task.id])
        trial.submit(None)
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> Folder:
    made = Folder(pytester, "super_sandbox = local\n", agents=AGENT.format(right=RIGHT))
    made.write("project/model.py", MODEL)
    made.write("project/run.py", RUN)
    made.write("hidden/model.py", HIDDEN)
    return made


def write_tasks(project: Folder, *ids: str, **grade: Any) -> None:
    for id in ids:
        given = {name: value for name, value in {**GRADE, **grade}.items() if value is not None}
        task = {"set": "expert", "query": "Write `mean`.", "repository": {"path": "project", "provide": True}}
        project.write(f"{id}.task.yaml", json.dumps({"id": id, **task, "grade": given}))


def run(project: Folder, *ids: str, **grade: Any) -> dict[str, Any]:
    write_tasks(project, *ids, **grade)
    return run_written(project)


def run_written(project: Folder) -> dict[str, Any]:
    project.pytester.runpytest("--super-agent=agents:Agent", ".")
    return {row["id"]: row for row in project.rows}


def scores(row: dict[str, Any]) -> dict[str, float]:
    return {value["name"]: value["score"] for value in row["graded"]}


def test_a_right_solution_passes_and_each_value_is_stored(project: Folder) -> None:
    row = run(project, "right")["right"]
    assert row["error"] is None
    assert row["solved"], row["graded"]
    assert row["metrics"]["graded"] == 1.0
    assert row["metrics"]["accuracy"] is None
    assert list(scores(row)) == [
        "exit code",
        "tests.test_model.test_mean",
        "tests.test_model.test_one",
        "out.json/mean",
        "out.json/all [0]",
        "out.json/all [1]",
        "value",
    ]
    assert row["changed_elsewhere"] == []
    folder = project.latest / row["folder"]
    with tarfile.open(folder / "collected.tar") as archive:
        assert archive.getnames() == ["project/model.py"]
    assert "value = 2.0" in (folder / "grading.log").read_text()


def test_what_comes_then_is_graded_where_no_code_of_the_agent_has_run(project: Folder) -> None:
    project.write("hidden/labels.json", '{"mean": 1.5, "all": [1.0, 2.0]}')
    then = {
        "collect": ["out.json"],
        "files": {"labels.json": "hidden/labels.json"},
        "command": "! test -e left && cmp out.json labels.json",
        "result": [{"name": "labels", "exit": 0}],
    }
    command = "python run.py; touch left; ! test -e labels.json"
    rows = run(project, "right", "nothing", files={}, command=command, result=[{"exit": 0}], then=then)
    assert scores(rows["right"]) == {"exit code": 1.0, "labels": 1.0}
    assert scores(rows["nothing"]) == {"exit code": 1.0, "labels": 0.0}


def test_byte_code_is_not_collected_in_place_of_the_text_that_is_read(project: Folder) -> None:
    given = {"collect": "all", "command": "python run.py", "files": {}, "result": GRADE["result"][-1:]}
    row = run(project, "compiles", **given)["compiles"]
    assert scores(row)["value"] == 0.0
    with tarfile.open(project.latest / row["folder"] / "collected.tar") as archive:
        assert [name for name in archive.getnames() if name.endswith(".pyc")] == []


@pytest.mark.slow
def test_what_the_agent_did_not_write_is_wrong_and_what_it_wrote_elsewhere_is_told(project: Folder) -> None:
    rows = run(project, "nothing", "elsewhere", "plants")
    assert not any(row["error"] or row["solved"] for row in rows.values())
    assert scores(rows["nothing"])["tests.test_model.test_mean"] == 0.0
    assert rows["elsewhere"]["changed_elsewhere"] == ["new.txt", "project/run.py"]
    # Its exit code would have been right.
    assert scores(rows["elsewhere"])["exit code"] == 0.0
    assert not any(scores(rows["plants"]).values())


def test_results_and_hidden_files_that_the_agent_planted_do_not_count(project: Folder) -> None:
    row = run(project, "plants", collect="all", command=TEST)["plants"]
    assert row["changed_elsewhere"] == []
    assert not any(scores(row).values())


@pytest.mark.slow
def test_what_the_grader_printed_last_explains_a_miss_that_has_no_value(project: Folder) -> None:
    project.write("project/run.py", "import a_missing_package\n")
    project.write("hidden/model.py", "import a_missing_package\n")
    missing = "ModuleNotFoundError: No module named 'a_missing_package'"
    tests = {"command": f"{TEST} --color=yes", "result": [{"junit": "report.xml"}]}
    for grade in ({"command": "python run.py", "result": GRADE["result"][2:]}, tests):
        write_tasks(project, "right", **grade)
        output = project.pytester.runpytest("--super-agent=agents:Agent", ".").stdout
        output.fnmatch_lines([f"*; the grader ended with exit code [12] and printed: {missing}*"])
        output.no_fnmatch_line("*and printed:*and printed:*")
    # A wrong value explains itself.
    project.write("hidden/model.py", HIDDEN)
    (project.path / "right.task.yaml").unlink()
    row = run(project, "nothing", command=TEST, result=[{"junit": "report.xml"}])["nothing"]
    assert [value["printed"] for value in row["graded"]] == ["", ""]


def test_an_exit_in_the_agents_code_passes_only_checks_that_trust_the_exit_code(project: Folder) -> None:
    row = run(project, "exits")["exits"]
    assert scores(row) == {
        "exit code": 1.0,
        "report.xml": 0.0,
        "out.json/mean": 0.0,
        "out.json/all": 0.0,
        "value": 0.0,
    }
    assert row["graded"][1]["why"] == "report.xml cannot be read: No such file or directory"
    assert row["graded"][-1]["why"] == "what the command printed has no match for `value = (.*)`"


@pytest.mark.slow
def test_what_the_agent_broke_is_a_miss_with_the_reason(project: Folder) -> None:
    reasons = {
        "hangs": "the grader's command did not end within 2 s",
        "link": "project/model.py is a link, which is not collected",
        "huge": "the files to collect have 1,048,576 MiB, more than 256",
        "lost": "the sandbox was lost: ended with exit code 3: the bridge was killed by signal 9",
    }
    rows = run(project, *reasons, timeout=2)
    assert not any(row["error"] for row in rows.values())
    assert {id: {value["why"] for value in row["graded"]} for id, row in rows.items()} == {
        id: {why} for id, why in reasons.items()
    }
    assert {row["metrics"]["graded"] for row in rows.values()} == {0.0}


def test_a_result_that_no_parser_reads_is_a_miss(project: Folder) -> None:
    checks = [{"junit": "report.xml"}, {"json": {"file": "out.json"}, "expected": 1}]
    copies = "cp model.py out.json; cp model.py report.xml"
    rows = run(project, "integer", "encoding", command=copies, result=checks)
    assert not any(row["error"] or row["solved"] for row in rows.values())
    assert rows["integer"]["graded"][1]["found"].startswith("9999")
    assert rows["encoding"]["graded"][0]["why"] == "report.xml is not XML: unknown encoding: x"


def test_a_disk_without_room_for_the_collected_files_is_an_error_and_not_a_miss(project: Folder) -> None:
    # Each file of the agent is below the limit, and the archive is not.
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))"
    project.pytester.makeconftest(limit)
    write_tasks(project, "large", collect="all")
    done = project.pytester.runpytest_subprocess("--super-agent=agents:Agent", ".")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines("*results cannot be written under *: File too large")


def test_a_file_that_the_agent_removed_is_not_there_for_the_grader(project: Folder) -> None:
    row = run(project, "removes", command="test ! -e model.py", result=[{"exit": 0}])["removes"]
    assert row["solved"]


@pytest.mark.slow
@pytest.mark.parametrize("where", ["fresh", "same"])
def test_a_file_in_place_of_a_folder_is_the_agents_own_doing(project: Folder, where: str) -> None:
    project.write("project/lib/a.py", "")
    (project.path / "project" / "model.py").unlink()
    paths = None if where == "same" else ["model.py", "lib", "tests"]
    given = {"command": "cat tests/test_model.py", "collect": paths, "where": where, "result": [{"exit": 0}]}
    rows = run(project, "folder", "file", "parent", "deep", **given)
    assert {(row["error"], row["solved"]) for row in rows.values()} == {(None, True)}


def test_in_the_same_sandbox_everything_of_the_agent_counts(project: Folder) -> None:
    given = {"where": "same", "collect": None}
    row = run(project, "elsewhere", **given, result=[{"exit": 3}])["elsewhere"]
    assert (row["solved"], row["graded_in"], row["changed_elsewhere"]) == (True, "same", None)


@pytest.mark.slow
def test_a_grader_runs_after_a_spent_limit_and_beside_a_running_cell(project: Folder) -> None:
    given = {
        "where": "same",
        "collect": None,
        "command": "sleep 1; echo 1 > number",
        "result": [{"number": "number"}],
    }
    write_tasks(project, "busy", "waits", **given)
    for id in ("busy", "waits"):
        path = project.path / f"{id}.task.yaml"
        path.write_text(json.dumps({**json.loads(path.read_text()), "limits": {"compute": 2, "cell": 1}}))
    rows = run_written(project)
    assert all(row["solved"] for row in rows.values()), rows
    assert max(row["compute_seconds"] for row in rows.values()) < 3


@pytest.mark.long
def test_verify_tells_which_grader_passes_although_the_code_only_exits(project: Folder) -> None:
    write_tasks(project, "sound")
    write_tasks(project, "weak", command="python run.py || true", result=[{"exit": 0}])
    write_tasks(project, "tests", command=TEST, result=[{"junit": "report.xml"}])
    for path in project.path.glob("*.task.yaml"):
        task = json.loads(path.read_text())
        cell = f"open('project/model.py', 'w').write({RIGHT!r})"
        path.write_text(json.dumps({**task, "solution": {"cells": [cell]}}))
    done = command(project, "verify", ".", "--epochs=1", "--sandbox=local")
    assert done.ret == 1
    shared, exits = (line for line in done.outlines if line.startswith(("weak ", "fails ")))
    assert fnmatch(
        shared, "weak    tests: *pytest/__main__.py runs the agent's code and judges it in one process,*"
    )
    assert exits == "weak    weak: its grader passes if each collected Python file only has `os._exit(0)`"


def command(project: Folder, *arguments: str) -> pytest.RunResult:
    code = "import sys; from pytest_super.cli import main; sys.exit(main())"
    return project.pytester.run(sys.executable, "-c", code, *arguments)


@pytest.mark.slow
def test_a_trial_of_a_mended_grader_is_not_scored_again(project: Folder) -> None:
    short: dict[str, Any] = {"command": "echo $0; exit 3", "files": None}
    run(project, "right", result=[{"exit": 3}], **short)
    write_tasks(project, "right", result=[{"exit": 4}], **{**short, "command": "echo mended; exit 3"})
    # What the old grader said is not what the new one says.
    done = command(project, "rescore", ".super/runs/latest", "--tasks=.", "--write")
    assert done.ret == 1
    done.stderr.fnmatch_lines("*no trial of * can be scored: *otherwise than in the run: run its task again*")
