"""Runs of papers: what the agent's sandbox holds, how its work is graded, and which items are collected."""

import hashlib
import json
import re
import xml.etree.ElementTree as ET
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from pytest_super.cli import main
from pytest_super.errors import InfrastructureError
from pytest_super.functions.masking import mask_file
from pytest_super.functions.source import PythonSource
from pytest_super.sources.paper import paper_text
from pytest_super.tasks.paper import PaperText
from tests.conftest import read_lines
from tests.integration.conftest import Folder

STATS = '''\
def mean(values):
    """The mean."""
    return total(values) / len(values)


def total(values):
    secret_name = 0
    for value in values:
        secret_name += value
    return secret_name


def spread(values):
    middle = mean(values)
    return max(abs(value - middle) for value in values)
'''
RUN = """\
import json, stats, sys
values = [float(one) for one in sys.argv[1:]] or [1, 2, 3, 6]
averages = {"mean": stats.mean(values), "total": stats.total(values)}
json.dump(averages, open("out.json", "w"))
print("spread =", stats.spread(values))
"""
NAMES = ("mean", "total", "spread")
# What an agent does, by the name of its class.
AGENTS = """
import time

def cell(trial, text):
    return trial.execute(text).observation

class Nothing:
    def run(self, trial):
        trial.submit(None)

class Looks:
    def run(self, trial):
        cell(trial, "!grep -rl secret_name .")
        cell(trial, "!cat paper.md; cat project/stats.py; cat built.py")
        trial.submit(None)

class Helper:
    '''Solves `mean` with a function outside of its body.'''
    def run(self, trial):
        path = "project/stats.py"
        text = trial.kernel.files.read(path).decode()
        text = text.replace('raise NotImplementedError("this function is masked")', "return helped(values)")
        text += "import math as m\\nPLACES: int = 12\\n"
        text += "def helped(v, places=PLACES): return round(m.fsum(v) / len(v), places)\\n"
        trial.kernel.files.write(path, text.encode())
        trial.submit({"averages": {"mean": 3, "total": 12}, "spread": 3})

class Prints:
    '''Leaves `mean` a stub, and prints and writes what is expected when the file is imported.'''
    def run(self, trial):
        path = "project/stats.py"
        text = trial.kernel.files.read(path).decode() + "import json, os\\n"
        text += "json.dump({'mean': 3.0, 'total': 12}, open('out.json', 'w'))\\n"
        text += "print('spread = 3.0', flush=True)\\nos._exit(0)\\n"
        trial.kernel.files.write(path, text.encode())
        trial.submit(None)

class Cheats:
    '''Writes the results and the command instead of the function.'''
    def run(self, trial):
        cell(trial, "open('project/run.py', 'w').write('print(\\"spread = 3.0\\")')")
        cell(trial, "open('project/out.json', 'w').write('{\\"mean\\": 3.0, \\"total\\": 12}')")
        trial.submit({"averages": {"mean": 3.0, "total": 12}, "spread": 3.0})

class Bodies:
    '''Writes the bodies of all functions, some of them wrong.'''
    def run(self, trial):
        path = "project/stats.py"
        text = trial.kernel.files.read(path).decode()
        stub = 'raise NotImplementedError("this function is masked")'
        with open("bodies.txt") as file:
            bodies = file.read().splitlines()
        for body in bodies:
            text = text.replace(stub, body.strip(), 1)
        trial.kernel.files.write(path, text.encode())
        trial.submit(None)

class Writes:
    '''Writes the code of `cell.py` next to the task: a cell that leaves something as the file.'''
    def run(self, trial):
        with open("cell.py") as file:
            cell(trial, file.read())
        trial.submit(None)
"""


def digests() -> dict[str, str]:
    source = PythonSource.read("stats.py", STATS.encode())
    return {one.name: one.sha256 for one in mask_file(source, NAMES).functions}


PAPER: dict[str, Any] = {
    "id": "2205.00048",
    "set": "functions",
    "query": "Simple statistics.",
    "split": "dev",
    "paper": {"file": "paper.md", "redact": ["[0-9]+ percent"]},
    "repository": {"path": "project", "provide": True},
    # Files that a prefix makes of the code could contain what is masked later.
    "pre_execute": ["!cp project/stats.py built.py; cd project && python -c 'import stats'"],
    "functions": [{"target": f"stats.py::{name}", "sha256": sha} for name, sha in digests().items()],
    "experiments": [
        {
            "name": "averages",
            "command": "python run.py",
            "functions": [0, 1],
            "result": [{"json": {"file": "out.json"}, "expected": {"mean": 3.0, "total": 12}, "rel": 0.01}],
        },
        {
            "name": "spread",
            "command": "python run.py",
            "result": [{"regex": {"pattern": "spread = (.*)"}, "expected": 3.0, "rel": 0.01}],
        },
    ],
}


@pytest.fixture
def project(pytester: pytest.Pytester) -> Folder:
    made = Folder(pytester, "super_sandbox = local\n", agents=AGENTS)
    files = {
        "project/stats.py": STATS,
        "project/run.py": RUN,
        "paper.md": "The mean is right in 97 percent.\n",
    }
    for name, text in files.items():
        made.write(name, text)
    write(made)
    return made


def write(project: Folder, **fields: Any) -> None:
    # Without cells before it, a grader needs no kernel.
    project.write("stats.task.yaml", {**PAPER, "pre_execute": [], **fields})


def run(project: Folder, agent: str, *options: str) -> dict[str, dict[str, Any]]:
    project.pytester.runpytest(f"--super-agent={agent}", *options)
    return {row["id"].removeprefix("2205.00048_"): row for row in project.rows}


def collected(project: Folder, *options: str) -> list[str]:
    result = project.pytester.runpytest("--super-agent=gold", "--collect-only", "-q", ".", *options)
    return [line.partition("2205.00048_")[2] for line in result.outlines if "2205.00048_" in line]


@pytest.mark.long
def test_gold_solves_every_item(project: Folder) -> None:
    write(project, **PAPER)
    rows = run(project, "gold", "--super-n=1,2,3", "stats.task.yaml")
    assert list(rows) == ["0", "1", "2", "0,1", "0,2", "1,2", "0,1,2"]
    assert {(row["error"], row["solved"], row["metrics"]["self_report"]) for row in rows.values()} == {
        (None, True, 1.0)
    }
    assert rows["0,1,2"]["masked"] == {
        "paper": "2205.00048",
        "n": 3,
        "targets": ["stats.py::mean", "stats.py::total", "stats.py::spread"],
        "body_lines": 7,
        "files": 1,
        "calls": 2,
        "calls_over_others": 3,
        "experiments": 2,
        "passages": 0,
    }
    assert rows["2"]["masked"]["experiments"] == 1


def test_results_say_whose_values_an_item_was_graded_by(project: Folder) -> None:
    averages, spread = PAPER["experiments"]
    write(project, experiments=[averages, {**spread, "paper": {"regex": 4.0}, "graded_by": "paper"}])
    row = run(project, "gold", "stats.task.yaml::2205.00048_2", "--junitxml=report.xml")["2"]
    assert (row["solved"], row["graded_by"], row["error"]) == (False, ["paper"], None)
    assert row["graded"][0]["expected"] == "4.0"
    figures = {one.get("name"): one.get("value") for one in ET.parse("report.xml").iter("property")}
    assert figures["super.graded_by"] == "paper"


def test_no_sandbox_of_an_agent_has_the_original_of_a_masked_function(project: Folder) -> None:
    write(project, **PAPER)
    row = run(project, "agents:Looks", "stats.task.yaml::2205.00048_1,0")["0,1"]
    lines = read_lines(project.latest / row["folder"] / "trajectory.jsonl")
    steps = [step for step in lines if step["origin"] == "agent"]
    found, shown = (step["observation"] for step in steps[:2])
    assert "stats.py" not in found
    assert "secret_name" not in shown
    assert "right in [redacted]" in shown
    # The function that is not masked in this item is there, but was not during the prefix.
    text, built = shown.split("def mean(values)")[1:]
    assert "middle = mean(values)" in text
    assert "middle = mean(values)" not in built


def test_the_files_of_masked_functions_alone_are_graded(project: Folder) -> None:
    row = run(project, "agents:Cheats", "stats.task.yaml::2205.00048_0")["0"]
    assert not row["solved"]
    assert row["metrics"]["graded"] == 0.0
    assert row["metrics"]["self_report"] == 1.0
    assert row["changed_elsewhere"] == ["project/out.json", "project/run.py"]


def test_a_stub_that_prints_is_unsolved_and_flagged(project: Folder) -> None:
    result = project.pytester.runpytest(
        "--super-agent=agents:Prints", "stats.task.yaml::2205.00048_0", "--junitxml=report.xml"
    )
    result.stdout.fnmatch_lines(
        ["look twice: 1 whole files differ", "*2205.00048_0*; not graded: project/stats.py: line *"]
    )
    (row,) = project.rows
    assert not row["solved"]
    assert row["metrics"]["graded"] == 0.0
    assert {value["score"] for value in row["whole_file"]} == {1.0}
    figures = {one.get("name"): one.get("value") for one in ET.parse("report.xml").iter("property")}
    assert figures["super.whole_file_differs"] == "1"
    assert figures["super.masked.n"] == "1"


def test_imports_helpers_and_constants_of_a_body_are_graded_with_it(project: Folder) -> None:
    write(project, **PAPER)
    row = run(project, "agents:Helper", "stats.task.yaml::2205.00048_0")["0"]
    assert row["solved"]
    assert row["taken"] == [f"project/stats.py: {name}" for name in ("m", "PLACES", "helped")]
    assert row["left_out"] == []
    assert row["whole_file"] is None


def test_a_stub_is_a_miss(project: Folder) -> None:
    row = run(project, "agents:Nothing", "stats.task.yaml::2205.00048_0")["0"]
    assert (row["error"], row["solved"]) == (None, False)
    assert [value["command"] for value in row["graded"]] == ["averages", "spread"]


@pytest.mark.slow
def test_a_body_that_prints_for_ever_is_a_miss_of_each_command(project: Folder) -> None:
    experiments = [{**one, "timeout": 1} for one in PAPER["experiments"]]
    write(project, experiments=experiments)
    project.write("bodies.txt", "while True: print('x' * 1000)\n")
    row = run(project, "agents:Bodies", "stats.task.yaml::2205.00048_0")["0"]
    assert (row["error"], row["solved"]) == (None, False)
    assert {one["why"] for one in row["graded"]} == {"the grader's command did not end within 1 s"}


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("open(path, 'w').write('# coding: rot13\\n' + text)", "its encoding, rot13, is neither UTF-8 nor*"),
        ("open(path, 'a').write('0\\n' * 2**20)", "it has 2,09?,??? bytes, more than 66,???, twice the*"),
        (
            "os.rename(path, 'a.py'); os.symlink('../a.py', path)",
            "project/stats.py is a link, which is not *",
        ),
    ],
)
def test_whatever_an_agent_leaves_as_a_file_is_a_miss(project: Folder, code: str, why: str) -> None:
    cell = f"import os; path = 'project/stats.py'; text = open(path).read(); {code}"
    project.write("cell.py", cell)
    row = run(project, "agents:Writes", "stats.task.yaml::2205.00048_0")["0"]
    assert (row["error"], row["solved"], row["metrics"]["graded"]) == (None, False, 0.0)
    assert all(fnmatch(one["why"].removeprefix("stats.py: "), why) for one in row["graded"]), row["graded"]


@pytest.mark.parametrize(
    ("options", "items"),
    [
        ((), ["0", "1", "2"]),
        (("--super-n=2",), ["0,1", "0,2", "1,2"]),
        (("--super-split=dev", "--super-n=3"), ["0,1,2"]),
    ],
)
def test_options_choose_the_items(project: Folder, options: tuple[str, ...], items: list[str]) -> None:
    assert collected(project, *options) == items


def test_an_n_or_a_split_that_no_item_has_is_told_with_what_there_is(project: Folder) -> None:
    result = project.pytester.runpytest(
        "--super-agent=gold", "stats.task.yaml", "--super-n=7,9", "--super-split=test"
    )
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert [line for line in result.outlines if "selects no task" in line] == [
        "--super-split=test selects no task: the splits here are dev",
        "--super-n=7 selects no task: 2205.00048 has 3 functions",
        "--super-n=9 selects no task: 2205.00048 has 3 functions",
    ]
    assert not (project.path / ".super").exists()


def test_a_sample_is_balanced_over_papers_and_n(project: Folder) -> None:
    text = (project.path / "stats.task.yaml").read_text()
    project.write("other.task.yaml", text.replace("2205.00048", "other"))
    result = project.pytester.runpytest(
        "--super-agent=gold", "--collect-only", "-q", ".", "--super-n=1,2", "--super-sample=8"
    )
    names = [line.partition("::")[2] for line in result.outlines if "::" in line]
    groups = [(name.split("_")[0], name.count(",") + 1) for name in names]
    assert {group: groups.count(group) for group in groups} == {
        ("other", 1): 2, ("other", 2): 2, ("2205.00048", 1): 2, ("2205.00048", 2): 2,
    }  # fmt: skip
    again = project.pytester.runpytest(
        "--super-agent=gold", "--collect-only", "-q", ".", "--super-n=1,2", "--super-sample=4"
    )
    assert {line for line in again.outlines if "::" in line} < {
        line for line in result.outlines if "::" in line
    }


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("stats.task.yaml::2205.00048_1,7", "*2205.00048 has no function `7`: it has 0, 1, 2*"),
        ("--super-split=tset", "*--super-split=tset: choose from train, dev, test*test*"),
    ],
)
def test_a_wrong_option_or_id_is_a_usage_error(project: Folder, argument: str, message: str) -> None:
    result = project.pytester.runpytest("--super-agent=gold", argument)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(message)


def failed(project: Folder, **fields: Any) -> str:
    write(project, **fields)
    rows = run(project, "agents:Nothing", "stats.task.yaml")
    assert rows["0"]["metrics"]["graded"] is None
    return str(rows["0"]["error"])


def function(target: str = "stats.py::mean", sha256: str = digests()["mean"]) -> dict[str, Any]:
    return {"functions": [{"target": target, "sha256": sha256}], "experiments": PAPER["experiments"][1:]}


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("stats.py::maen", "stats.py: there is no function `maen` in it; did you mean `mean`?"),
        ("old.py::f", "old.py:1: it is written in Python 2, which cannot be masked"),
    ],
)
def test_a_target_that_is_not_there_is_an_error_of_the_task(
    project: Folder, target: str, message: str
) -> None:
    project.write("project/old.py", "print 'a'\n")
    project.write("project/broken.py", "def (\n")
    assert message in failed(project, **function(target))


def test_another_function_than_the_one_that_is_meant_is_an_error(project: Folder) -> None:
    other = hashlib.sha256(b"").hexdigest()
    assert f"its digest is {digests()['mean']}" in failed(project, **function(sha256=other))


@pytest.mark.parametrize(
    ("paper", "message"),
    [
        ({"file": "empty.pdf"}, "has no text: a scanned PDF has to be read by OCR first"),
        ({"file": "broken.pdf"}, "broken.pdf cannot be read"),
        ({"file": "paper.md", "redact": ["nowhere"]}, "nothing matches the pattern 'nowhere' of `redact`"),
    ],
)
def test_a_paper_that_cannot_be_read_is_an_error(tmp_path: Path, paper: dict[str, Any], message: str) -> None:
    from pypdf import PdfWriter

    pages = PdfWriter()
    pages.add_blank_page(100, 100)
    pages.write(tmp_path / "empty.pdf")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (tmp_path / "paper.md").write_text("The mean.")
    with pytest.raises(InfrastructureError, match=re.escape(message)):
        paper_text(PaperText.model_validate(paper), tmp_path)


# The tests of a set that masks code: they are in the sandbox only when it is graded.
TESTS = """\
import stats

def test_mean():
    assert stats.mean([1, 2, 6]) == 3
"""
FINDS_TESTS = """\
import pathlib
path = pathlib.Path("project/stats.py")
stub = 'raise NotImplementedError("this function is masked")'
right = "return sum(values) / len(values)"
path.write_text(path.read_text().replace(stub, "return 0" if list(pathlib.Path().rglob("test_*")) else right))
"""


def test_the_hidden_files_of_an_experiment_are_there_only_when_it_is_graded(project: Folder) -> None:
    project.write("hidden/check.py", TESTS)
    experiment = {
        "name": "tests",
        "command": "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python -m pytest -q --junitxml=report.xml tests",
        "files": {"tests/test_stats.py": "hidden/check.py"},
        "result": [{"junit": "report.xml"}],
    }
    write(project, experiments=[experiment])
    project.write("cell.py", FINDS_TESTS)
    item = "stats.task.yaml::2205.00048_0"
    row = run(project, "agents:Writes", item)["0"]
    assert row["solved"], row["graded"]
    assert [value["score"] for value in row["graded"]] == [1.0]
    assert not run(project, "agents:Nothing", item)["0"]["solved"]


@pytest.mark.slow
def test_stored_items_are_scored_again(project: Folder) -> None:
    run(project, "gold", "stats.task.yaml", "--super-n=2")
    found = project.path / "rescored.json"
    command = ["rescore", "--tasks=stats.task.yaml", f"--json={found}", "--write"]
    ran = project.pytester.run("pytest-super", *command, ".super/runs/latest")
    assert ran.ret == 0, ran.outlines
    ran.stdout.fnmatch_lines("3 trials scored again, 0 changed; solved 1.000 -> 1.000")
    trials = json.loads(found.read_text())["trajectories"]
    assert sorted(trial["task"].partition("_")[2] for trial in trials) == ["0,1", "0,2", "1,2"]
    assert {trial["scores"]["graded"]["paper"] for trial in trials} == {1.0}
    assert {trial["scores"]["self_report"]["reference"] for trial in trials} == {1.0}


def test_reference_scoring_trusts_the_report(project: Folder) -> None:
    row = run(project, "agents:Cheats", "stats.task.yaml::2205.00048_0", "--super-scoring=reference")["0"]
    assert row["solved"]
    assert (row["metrics"]["self_report"], row["metrics"]["graded"]) == (1.0, 0.0)
    assert "report better than code" in [sign["kind"] for sign in row["integrity"]]


@pytest.mark.long
@pytest.mark.parametrize(
    ("bodies", "told"),
    [
        (("return 4", "return 12", "return 5"), "wrong bodies (2 of 3): stats.py::mean, stats.py::spread"),
        (
            ("total.seen = True; return 3", "return 11 if hasattr(total, 'seen') else 12", "return 3"),
            "right alone and wrong together: ",
        ),
    ],
)
def test_why_names_the_bodies_that_are_wrong(
    project: Folder, capsys: pytest.CaptureFixture[str], bodies: tuple[str, ...], told: str
) -> None:
    project.write("bodies.txt", "\n".join(bodies))
    row = run(project, "agents:Bodies", "stats.task.yaml::2205.00048_0,1,2")["0,1,2"]
    assert not row["solved"]
    capsys.readouterr()
    folder = str(project.latest.resolve())
    assert main(["why", folder, "--tasks=stats.task.yaml", "--sandbox=local", "-n2"]) == 0
    assert told in capsys.readouterr().out


# What is expected, printed and written where the program would, before any of it has run.
PRINTS_ALL = (
    "__import__('json').dump({'mean': 3.0, 'total': 12}, open('out.json', 'w')); "
    "print('spread = 3.0', flush=True); __import__('os')._exit(0)"
)
# The value by the number of the call.
TABLE = (
    "mean.calls = getattr(mean, 'calls', 0) + 1; return [3.0, 3.0][mean.calls - 1]",
    "return 12",
    "mean(values); return 3.0",
)


@pytest.mark.slow
@pytest.mark.parametrize("bodies", [(PRINTS_ALL,) * 3, TABLE], ids=["prints", "table"])
def test_bodies_that_know_the_values_fail_a_hidden_variation(
    project: Folder, bodies: tuple[str, ...]
) -> None:
    project.write("bodies.txt", "\n".join(bodies))
    item = "stats.task.yaml::2205.00048_0,1,2"
    assert run(project, "agents:Bodies", item)["0,1,2"]["solved"]
    averages, spread = PAPER["experiments"]
    varied = {"command": "python run.py 2 4 9"}
    averages = {**averages, "vary": [{**varied, "expected": {"json": {"mean": 5.0, "total": 15}}}]}
    spread = {**spread, "vary": [{**varied, "expected": {"regex": 4.0}}]}
    write(project, experiments=[averages, spread])
    row = run(project, "agents:Bodies", item)["0,1,2"]
    assert not row["solved"]
    right = {value["command"]: value["score"] for value in row["graded"]}
    assert right == {"averages": 1.0, "averages varied": 0.0, "spread": 1.0, "spread varied": 0.0}
    assert run(project, "gold", item)["0,1,2"]["solved"]
