"""`pytest-super import autoexperiment`: published records as papers with functions to mask."""

import csv
import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_super.authoring.importing.autoexperiment.results import pattern_of
from pytest_super.cli import main
from pytest_super.grading.values import last_match
from pytest_super.metrics.graded import NoValue
from pytest_super.tasks.grade import RegexValue
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.paper import Experiment
from pytest_super.tasks.task import Task

PAPER = "2205.00048"
CODE = '''\
"""Measures of fairness."""
import sys


def gini(values):
    """How unequal the values are."""
    total = sum(values)
    return sum(abs(a - b) for a in values for b in values) / (2 * len(values) * total)


class Sums:
    def update(self, values):
        self.total = sum(values)
        return self


class Counts:
    def update(self, values):
        self.total = len(values)
        return self

    def shift(
        self,
        by,
    ):
        return self.total - by


if __name__ == "__main__":
    values = [1, 2, 3, 6]
    print(f"II-F: {gini(values):.6f} and II-F2: 7")
    print("Total loss = [tensor(%g)]" % Sums().update(values).total)
    print("bias:", Counts().update(values).shift(6.5))
    print("zero:", Counts().update(values).shift(4))
'''
LINES = {text.strip(): number for number, text in enumerate(CODE.splitlines(), 1)}


def function(func_id: int | str, name: str, header: object, **fields: Any) -> dict[str, Any]:
    """A record of the first snapshot: line numbers are texts."""
    lines = {"header_line": str(header), "line_end": str(header)}
    record = {"paper_id": PAPER, "func_id": str(func_id), "file": "src/fair.py", "name": name, **lines}
    return {**record, "relevant_paper": "", "description": f"Computes {name}.", **fields}


def experiment(exp_id: int, functions: str | None, result: Any, **fields: Any) -> dict[str, Any]:
    record = {"paper_id": PAPER, "exp_id": str(exp_id), "description": "Report the values.", "result": result}
    needed = {} if functions is None else {"func_dependencies": functions}
    return {**record, "solution": "python src/fair.py", **needed, **fields}


def def_line(text: str) -> int:
    return LINES[text]


GINI = function(0, "gini", def_line("def gini(values):"), relevant_paper="Inequality is $G$.")
GINI_VALUE = json.dumps({"II-F": [0.333333]})


class Checkout:
    """A checkout with the layout of the published repository, and what an import of it makes."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = folder / "checkout"
        self.output = folder / "out"
        self.capsys = capsys
        self.out = self.err = ""

    def folder(self, paper: str = PAPER) -> Path:
        return self.root / "dataset" / "MLRC" / paper

    def paper(
        self,
        functions: list[dict[str, Any]],
        experiments: list[dict[str, Any]],
        *,
        paper: str = PAPER,
        code: str = CODE,
    ) -> None:
        folder = self.folder(paper)
        (folder / "code" / "src").mkdir(parents=True, exist_ok=True)
        (folder / "code" / "src" / "fair.py").write_text(code)
        (folder / "paper.txt").write_text("The Gini coefficient is $G$.\n")
        for name, rows in (("functions", functions), ("experiments", experiments)):
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(self, *options: str) -> int:
        status = main(["import", "autoexperiment", str(self.root), "--output", str(self.output), *options])
        self.out, self.err = self.capsys.readouterr()
        return status

    def task(self, paper: str = PAPER) -> Task:
        (task,) = load_tasks(self.output / f"{paper}.task.yaml")
        return task

    def files(self) -> dict[str, bytes]:
        found = (path for path in self.output.rglob("*") if path.is_file())
        return {path.relative_to(self.output).as_posix(): path.read_bytes() for path in found}


@pytest.fixture
def checkout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Checkout:
    return Checkout(tmp_path, capsys)


def targets(task: Task) -> dict[str | None, str]:
    return {one.id: one.target for one in task.functions}


def expected(one: Experiment) -> dict[str | None, Any]:
    return {check.name: check.expected for check in one.result if check.has_expected}


# What a paper becomes


def test_a_paper_becomes_a_task_next_to_its_code_and_its_text(checkout: Checkout) -> None:
    checkout.paper([GINI], [experiment(3, "0", GINI_VALUE)])
    assert checkout.run() == 0, checkout.out
    task = checkout.task()
    (one,) = task.functions
    assert (task.id, task.set) == (PAPER, "functions")
    assert (one.id, one.target) == ("0", "src/fair.py::gini")
    text = CODE[CODE.index("def gini") : CODE.index("\n\nclass Sums")]
    assert one.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert (one.passage, one.description) == ("Inequality is $G$.", "Computes gini.")
    (made,) = task.experiments
    assert (made.name, made.command) == ("Experiment 1", "python src/fair.py")
    assert (made.description, made.graded_by) == ("Report the values.", "gold-run")
    assert made.functions == ["0"]
    (check,) = made.result
    assert (check.name, check.expected, check.rel) == ("II-F", [0.333333], 0.05)
    assert task.paper is not None
    assert (checkout.output / task.paper.file).read_text() == "The Gini coefficient is $G$.\n"
    assert checkout.files()[f"{PAPER}/src/fair.py"] == CODE.encode()
    assert main(["validate", str(checkout.output)]) == 0


def test_the_report_says_what_was_used_and_that_the_patterns_are_guessed(checkout: Checkout) -> None:
    checkout.paper([GINI, function(4, "gone", 1)], [experiment(0, "0", '{"a": 1, "b": 2}')])
    assert checkout.run() == 1
    lines = checkout.out.splitlines()
    assert lines[0] == f"{PAPER}: 1 of 2 functions, 1 of 1 experiment imported"
    assert "1 paper, 1 function, 1 experiment in " in lines[-3]
    assert lines[-2].startswith("The patterns of 2 values are guessed from their names")
    assert f"pytest-super verify {checkout.output}" in lines[-2]
    assert lines[-1].startswith("No code was run")


def test_the_later_snapshot_names_the_experiments_with_the_functions(checkout: Checkout) -> None:
    numbers = {"header_line": def_line("def gini(values):"), "line_end": 8}
    functions = [
        function(0, "gini", 1) | numbers | {"func_id": 0, "exp_dependencies": [1, 2]},
        function(1, "shift", def_line("def shift(")) | {"exp_dependencies": ["2"]},
    ]
    checkout.paper(functions, [experiment(one, None, {"II-F": 0.3}) for one in (1, 2)])
    assert checkout.run() == 0, checkout.out
    needed = {one.name: one.functions for one in checkout.task().experiments}
    assert needed == {"Experiment 1": ["0"], "Experiment 2": ["0", "1"]}


# Functions are found by their names


def test_stale_lines_do_not_matter(checkout: Checkout) -> None:
    checkout.paper([function(0, "gini", 25), function(1, "shift", 1)], [experiment(0, "0,1", GINI_VALUE)])
    assert checkout.run() == 0
    assert targets(checkout.task()) == {"0": "src/fair.py::gini", "1": "src/fair.py::Counts.shift"}


@pytest.mark.parametrize(
    ("header", "end", "target"),
    [
        ("self.total = sum(values)", None, "Sums.update"),
        ("class Counts:", None, "Counts.update"),
        ('if __name__ == "__main__":', None, "Counts.update"),
        ("import sys", None, "Sums.update"),
    ],
)
def test_recorded_lines_choose_between_equal_names(
    checkout: Checkout, header: str, end: int | None, target: str
) -> None:
    line = def_line(header)
    record = function(0, "update", line) | {"line_end": str(end or line)}
    checkout.paper([record], [experiment(0, "0", GINI_VALUE)])
    assert checkout.run() == 0, checkout.out
    assert targets(checkout.task()) == {"0": f"src/fair.py::{target}"}


def test_lines_that_go_beyond_a_class_still_choose_its_function(checkout: Checkout) -> None:
    inits = "\n".join(f"        self.a{number} = {number}" for number in range(6))
    code = "".join(
        f"class {name}:\n    def __init__(self):\n{inits}\n\n    def __call__(self):\n        return 1\n\n\n"
        for name in "AB"
    )
    header = code.splitlines().index("class B:") + 1
    # The recorded range starts at the class and ends in the empty lines after it.
    record = function(0, "__call__", header, line_end=str(header + 11))
    checkout.paper([record], [experiment(0, "0", GINI_VALUE)], code=code)
    assert checkout.run() == 0, checkout.out
    assert targets(checkout.task()) == {"0": "src/fair.py::B.__call__"}


@pytest.mark.parametrize("header", ["", "x", "0", None])
def test_equal_names_without_a_hint_are_ambiguous(checkout: Checkout, header: str | None) -> None:
    records = [GINI, function(1, "update", 1, header_line=header)]
    checkout.paper(records, [experiment(0, "0,1", GINI_VALUE)])
    assert checkout.run() == 1
    assert list(targets(checkout.task())) == ["0"]
    assert "function 1: left out: src/fair.py: `update` is not unique" in checkout.out
    assert "Sums.update (line 12), Counts.update (line 18)" in checkout.out


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"file": "src/fare.py"}, "src/fare.py: "),
        ({"name": "gin"}, "src/fair.py: there is no function `gin` in it; did you mean `gini`?"),
        ({"file": "more.py", "name": "empty"}, "more.py:1: `empty` cannot be masked: it has no body"),
        ({"name": "gini"}, "src/fair.py::gini is already the function 0"),
        ({"file": "more.bak", "name": "empty"}, "more.bak: this file is not copied"),
    ],
)
def test_a_function_that_cannot_be_masked_is_left_out(
    checkout: Checkout, change: dict[str, Any], why: str
) -> None:
    checkout.paper([GINI, function(1, "shift", 5) | change], [experiment(0, "0,1", GINI_VALUE)])
    code = checkout.folder() / "code"
    (code / "old.py").write_text("def f():\n    print 'a'\n")
    (code / "more.py").write_text("def empty(): pass\n")
    (code / "more.bak").write_text("def empty(): return 1\n")
    assert checkout.run() == 1
    assert checkout.task().experiments[0].functions == ["0"]
    (line,) = [line for line in checkout.out.splitlines() if "left out" in line]
    assert line.startswith("  function 1: left out: ")
    assert why in line


def test_an_experiment_that_needs_no_function_is_left_out(checkout: Checkout) -> None:
    functions = [GINI, function(1, "shift", 1), function(2, "gone", 1)]
    checkout.paper(
        functions, [experiment(0, "0", GINI_VALUE), experiment(1, "2", "{}"), experiment(2, "", "{}")]
    )
    assert checkout.run() == 1
    task = checkout.task()
    assert list(targets(task)) == ["0", "1"]
    assert [one.name for one in task.experiments] == ["Experiment 1"]
    assert "function 1: no experiment needs it: it is masked only together with others" in checkout.out
    assert "experiment 1: left out: none of the needed functions can be used" in checkout.out
    assert "experiment 2: left out: no recorded function is needed" in checkout.out


def test_experiments_are_those_that_the_published_tasks_were_made_of(checkout: Checkout) -> None:
    functions = [GINI, function(1, "shift", def_line("def shift("))]
    checkout.paper(functions, [experiment(0, "0", '{"II-F": 9}'), experiment(1, "1", '{"bias": 1}')])
    rows = [experiment(0, "0", GINI_VALUE), experiment(1, "1", '{"bias": 1}'), experiment(2, "0,9", "{}")]
    fields = list(rows[0])
    with (checkout.folder().parent / "mlrc_exps.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, fields)
        table.writeheader()
        table.writerows([*rows, experiment(0, "0", GINI_VALUE) | {"paper_id": "2110.03485"}])
    assert checkout.run() == 1
    first, second, third = checkout.task().experiments
    assert expected(first) == {"II-F": [0.333333]}
    assert third.functions == ["0"]
    assert "function 9 of experiment 2: left out: functions.jsonl does not have it" in checkout.out
    assert second.name == "Experiment 2"


# Results


@pytest.mark.parametrize(
    ("result", "numbers"),
    [
        ('{"II-F": 0.00094}', {"II-F": 0.00094}),
        ("{'II-F': [1e-08], 'GI (%)': 2}", {"II-F": [1e-08], "GI (%)": 2}),
        ({"a": -0.5, "b": 0}, {"a": -0.5, "b": 0}),
    ],
)
def test_results_are_json_or_python(checkout: Checkout, result: Any, numbers: dict[str, float]) -> None:
    checkout.paper([GINI], [experiment(0, "0", result)])
    assert checkout.run() == 0, checkout.out
    assert expected(checkout.task().experiments[0]) == numbers
    assert ("b is recorded as 0" in checkout.out) == (0 in numbers.values())


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ("0.5", "is not a mapping of names to numbers"),
        ("tensor(0.5)", "is neither JSON nor a Python literal"),
        ('{"a": 1, "b": [1, 2]}', "`b` of the recorded result is not a number"),
    ],
)
def test_a_result_of_another_form_leaves_the_exit_code(checkout: Checkout, result: str, why: str) -> None:
    checkout.paper([GINI], [experiment(0, "0", result)])
    assert checkout.run() == 0
    (check,) = checkout.task().experiments[0].result
    assert check.exit == 0
    assert f"{why}: only the exit code is checked" in checkout.out
    assert "guessed" not in checkout.out


@pytest.mark.parametrize(
    ("name", "printed", "found"),
    [
        (
            "total loss",
            "Epoch 1, step 2 / 5. Total loss: 0.9   Side loss: 3\nEpoch 2. Total loss: 0.79   ",
            0.79,
        ),
        ("total loss", "Total loss: nan   Side loss: 0.5", math.nan),
        ("IoU", "All: {'F-Score': 0.1, 'Box-IoU': 9.4e-04, 'Average-Loss': 0.6}\n3 s", 9.4e-4),
        ("last_side_loss", "Processing 1.png\nFinal side loss: 0.0005\n", 0.0005),
        ("IIF", "Time IIF:  0.02\n{'IIF': [2.2e-4], 'IGF': [6.5e-06]}\nTime IIF: 0.03\n", 2.2e-4),
        ("II-F", "II-F: [tensor(0.0109, dtype=torch.float64), tensor(0.01)]", 0.0109),
        ("one two three four", "One-two_three four = -7", -7),
    ],
)
def test_the_guessed_pattern_finds_the_last_value_of_a_name(name: str, printed: str, found: float) -> None:
    text = last_match(RegexValue(pattern=pattern_of(name)), printed, "the output")
    assert float(text) == pytest.approx(found, nan_ok=True)


@pytest.mark.parametrize(
    "printed", ["Loss of sides: 3", "asides loss 3", "side loss:\n3", "Time side loss 3"]
)
def test_the_guessed_pattern_finds_no_value_of_another_name(printed: str) -> None:
    with pytest.raises(NoValue):
        last_match(RegexValue(pattern=pattern_of("side_loss")), printed, "the output")


def test_a_remark_on_several_experiments_is_one_line(checkout: Checkout) -> None:
    checkout.paper([GINI], [experiment(one, "0", "0.5") for one in (1, 2)])
    assert checkout.run() == 0
    (line,) = [line for line in checkout.out.splitlines() if "exit code" in line]
    assert line.startswith("  experiments 1, 2: the recorded result is not a mapping")


# The code


def test_old_versions_links_workspaces_and_task_files_are_not_copied(checkout: Checkout) -> None:
    checkout.paper([GINI], [experiment(0, "0", GINI_VALUE)])
    code = checkout.folder() / "code"
    for name in (
        "__pycache__/a.pyc", ".git/config", "agents/workspace/s.py", "agents/agent.py", "src/fair.py.orig",
        "run copy.sh", "run.sh", ".hidden", "src/gini.task.yaml",
    ):  # fmt: skip
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text("x")
    (code / "run.sh").chmod(0o755)
    (code / "answers").symlink_to(checkout.folder() / "experiments.jsonl")
    assert checkout.run() == 0
    names = {name.removeprefix(f"{PAPER}/") for name in checkout.files() if name.startswith(f"{PAPER}/")}
    assert names == {"agents/agent.py", "src/fair.py", "run.sh", ".hidden"}
    assert os.access(checkout.output / PAPER / "run.sh", os.X_OK)
    assert (
        "not copied, because they are links or can contain solutions: .git, __pycache__, answers and 4 more"
        in (checkout.out)
    )


def test_a_second_import_follows_the_checkout_and_keeps_other_files(checkout: Checkout) -> None:
    checkout.paper([GINI], [experiment(0, "0", GINI_VALUE)])
    (checkout.folder() / "code" / "gone.py").write_text("")
    assert checkout.run() == 0
    files = checkout.files()
    assert checkout.run() == 0
    assert "nothing changed" in checkout.out
    assert checkout.files() == files
    (checkout.output / PAPER / "data.csv").write_text("mine")
    (checkout.folder() / "code" / "gone.py").unlink()
    assert checkout.run() == 0
    assert "(files: 1 removed)" in checkout.out
    assert checkout.files().keys() == files.keys() - {f"{PAPER}/gone.py"} | {f"{PAPER}/data.csv"}


@pytest.mark.parametrize("name", [f"{PAPER}.task.yaml", f"{PAPER}/src/fair.py", f"{PAPER}.txt"])
def test_what_a_person_changed_is_not_overwritten_without_force(checkout: Checkout, name: str) -> None:
    checkout.paper([GINI], [experiment(0, "0", GINI_VALUE)])
    checkout.run()
    original = checkout.files()
    with (checkout.output / name).open("a") as file:
        file.write("# mine\n")
    mine = checkout.files()
    assert checkout.run() == 1
    assert checkout.err.count("\n") == 1
    assert (
        f"{name} changed since the last import and was left as it is; --force overwrites it" in checkout.err
    )
    assert checkout.files() == mine
    assert checkout.run("--force") == 0
    assert checkout.files() == original


def test_a_record_that_names_files_elsewhere_removes_none(checkout: Checkout) -> None:
    checkout.paper([GINI], [experiment(0, "0", GINI_VALUE)])
    checkout.run()
    outside = checkout.output.parent / "outside.txt"
    outside.write_text("mine")
    record = {"files": {"../outside.txt": hashlib.sha256(b"mine").hexdigest()}}
    (checkout.output / "autoexperiment.import.json").write_text(json.dumps(record))
    assert checkout.run("--force") == 1
    assert "this is not the record of an import" in checkout.err
    assert outside.exists()


# What cannot be imported


@pytest.mark.parametrize("inside", ["", "dataset/MLRC/notes"])
def test_a_folder_that_is_no_checkout_is_refused(checkout: Checkout, inside: str) -> None:
    (checkout.root / inside).mkdir(parents=True)
    assert checkout.run() == 1
    (line,) = checkout.err.splitlines()
    assert str(checkout.root) in line
    assert ("name a checkout" in line) == (not inside)
    assert not checkout.output.exists()


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("functions.jsonl", "{}\n{,\n[1]\n", ["functions.jsonl:2: not JSON", "functions.jsonl:3: not a row"]),
        ("experiments.jsonl", "", ["no function has an experiment that needs it"]),
        ("experiments.jsonl", None, ["there is no experiments.jsonl"]),
    ],
)
def test_one_broken_paper_does_not_stop_the_others(
    checkout: Checkout, file: str, text: str | None, why: list[str]
) -> None:
    checkout.paper([GINI], [experiment(0, "0", GINI_VALUE)])
    checkout.paper([GINI], [experiment(0, "0", GINI_VALUE)], paper="2110.03485")
    path = checkout.folder() / file
    path.rename(checkout.root / "away")
    if text is not None:
        path.write_text(text)
    assert checkout.run() == 1
    assert all(f"  no task: {part}" in checkout.out for part in why)
    assert [path.name for path in checkout.output.glob("*.task.yaml")] == ["2110.03485.task.yaml"]
    assert "1 paper, 1 function, 1 experiment in " in checkout.out


def test_without_any_task_nothing_is_written(checkout: Checkout) -> None:
    checkout.paper([GINI], [])
    assert checkout.run() == 1
    assert "none of its 1 paper yields a task" in checkout.err
    assert not checkout.output.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"func_id": "a_b"},
            "functions.jsonl:2: left out: `func_id` has 'a_b', which is not an id of letters",
        ),
        ({"func_id": "0"}, "functions.jsonl:2: left out: line 1 has the same id, 0"),
        ({"description": ""}, "function 1: left out: it has no description, so no published task has it"),
    ],
)
def test_a_function_record_that_cannot_be_used_is_named(
    checkout: Checkout, change: dict[str, Any], message: str
) -> None:
    shift = function(1, "shift", def_line("def shift(")) | change
    checkout.paper([GINI, shift], [experiment(0, "0", GINI_VALUE)])
    assert checkout.run() == 1
    assert message in checkout.out
    assert list(targets(checkout.task())) == ["0"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"exp_id": ""}, "experiments.jsonl:2: left out: `exp_id` is missing"),
        ({"solution": " "}, "experiments.jsonl:2: left out: `solution` is missing"),
        (
            {"func_dependencies": "7"},
            "function 7 of experiment 1: left out: functions.jsonl does not have it",
        ),
    ],
)
def test_an_experiment_record_that_cannot_be_used_is_named(
    checkout: Checkout, change: dict[str, Any], message: str
) -> None:
    checkout.paper([GINI], [experiment(0, "0", GINI_VALUE), experiment(1, "0", GINI_VALUE) | change])
    assert checkout.run() == 1
    assert message in checkout.out
    assert [one.name for one in checkout.task().experiments] == ["Experiment 1"]


@pytest.mark.parametrize("data", [None, b" \n", b"\xff"])
def test_a_paper_without_a_readable_text_is_imported_without_it(
    checkout: Checkout, data: bytes | None
) -> None:
    checkout.paper([GINI], [experiment(0, "0", GINI_VALUE)])
    file = checkout.folder() / "paper.txt"
    file.unlink()
    if data is not None:
        file.write_bytes(data)
    assert checkout.run() == 1
    assert "paper.txt: left out: it " in checkout.out
    assert checkout.task().paper is None


def test_no_code_runs(checkout: Checkout, tmp_path: Path) -> None:
    command = f"touch {tmp_path}/ran && python src/fair.py"
    checkout.paper(
        [GINI], [experiment(0, "0", GINI_VALUE, solution=command)], code=f"{CODE}\nopen('ran', 'w')"
    )
    assert checkout.run() == 0
    assert not (tmp_path / "ran").exists()


# A run


@pytest.fixture
def project(checkout: Checkout, pytester: pytest.Pytester) -> pytest.Pytester:
    """Imports go to a folder of this project."""
    checkout.output = pytester.path / "out"
    pytester.makeini("[pytest]\nsuper_sandbox = local\n")
    pytester.makepyfile(agents="class Nothing:\n    def run(self, trial):\n        trial.submit(None)\n")
    return pytester


@pytest.mark.long
def test_gold_solves_an_imported_paper_and_a_stub_does_not(
    checkout: Checkout, project: pytest.Pytester
) -> None:
    results = [
        ("0", "{'II-F': [0.3333], 'II-F2': 7}"),
        ("2", '{"Total loss": 12, "bias": -2.5, "zero": 0}'),
        ("1,2", '{"bias": -2.5}'),
    ]
    functions = [GINI, function(1, "shift", 3), function(2, "update", def_line("class Sums:"))]
    checkout.paper(functions, [experiment(place, *one) for place, one in enumerate(results)])
    assert checkout.run() == 0, checkout.out
    gold = project.runpytest_subprocess("--super-agent=gold", "--super-n=1,3", "out")
    gold.assert_outcomes(passed=4)
    stub = project.runpytest_subprocess("--super-agent=agents:Nothing", "--super-n=1,3", "out")
    stub.assert_outcomes(failed=4)
