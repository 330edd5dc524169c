"""Sub-problems in a task file: tasks of their own, cut from the solution that the file states."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pytest_super.cli import main
from pytest_super.errors import TaskFileError
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.subproblems import DerivedTask
from pytest_super.tasks.task import Task
from pytest_super.trial.budget import budget_for

CELLS = [
    "import json",
    "rows = [1, 2]",
    "n = 3",
    "total = sum(rows)",
    "print(total)",
    "{'sum': total, 'n': n}",
]
# By cell: id and tags.
NAMES = [
    ("imports", []),
    ("rows", ["data"]),
    ("count", []),
    ("total", ["data", "work"]),
    ("show", []),
    ("end", []),
]


def notebook(cells: list[str] = CELLS, names: list[tuple[str, list[str]]] = NAMES) -> str:
    found = [
        {"cell_type": "code", "id": id, "metadata": {"tags": tags}, "outputs": [], "source": source}
        for source, (id, tags) in zip(cells, names, strict=True)
    ]
    text = {"cell_type": "markdown", "id": "text", "metadata": {}, "source": "# Sums"}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [text, *found]})


class Masked:
    """A folder with a notebook and one task file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "t.task.yaml"
        (folder / "t.ipynb").write_text(notebook())
        self.parent: dict[str, Any] = {
            "id": "t",
            "set": "expert",
            "query": "Report the sum.",
            "answer": {"sum": 3, "n": 3},
            "solution": {"notebook": "t.ipynb"},
        }

    def load(self, *subproblems: dict[str, Any], **fields: Any) -> list[Task]:
        """The tasks, of a parent with these fields, and with the sub-problems."""
        items = [{"id": "t_data", "category": "data", "query": "Make rows.", **item} for item in subproblems]
        data = {**self.parent, **fields, "subproblems": items}
        self.path.write_text(json.dumps({key: value for key, value in data.items() if value is not ...}))
        return load_tasks(self.path, shown="t")

    def derive(self, item: dict[str, Any], **fields: Any) -> Task:
        """The task of the one sub-problem."""
        (_, task) = self.load(item, **fields)
        return task

    def errors(self, text: str) -> list[str]:
        self.path.write_text(dedent(text))
        with pytest.raises(TaskFileError) as caught:
            load_tasks(self.path, shown="t")
        return str(caught.value).splitlines()


@pytest.fixture
def bench(tmp_path: Path) -> Masked:
    return Masked(tmp_path)


def prefix(task: Task) -> list[str | None]:
    return [step.cell for step in task.pre_execute]


def solution(task: Task) -> list[str]:
    assert task.solution is not None
    assert task.solution.cells is not None
    return task.solution.cells


# What becomes of the cells


def test_a_sub_problem_is_a_masked_task_behind_its_parent(bench: Masked) -> None:
    parent, task = bench.load({"mask": [2]})
    assert (parent.id, parent.set) == ("t", "expert")
    assert (task.id, task.set, task.category, task.query) == ("t_data", "masked", "data", "Make rows.")
    assert (budget_for(parent).token_limit, budget_for(task).token_limit) == (600_000, 400_000)


@pytest.mark.parametrize("mask", [[2, 4], ["rows", "total"], ["data"], ["rows", 4], ["rows", "data"]])
def test_cells_are_named_by_number_id_or_tag(bench: Masked, mask: list[int | str]) -> None:
    task = bench.derive({"mask": mask})
    assert isinstance(task, DerivedTask)
    assert task.masked_cells == (2, 4)
    # An id goes before a tag of the same name.
    names = [*NAMES[:2], ("data", []), *NAMES[3:]]
    (bench.folder / "t.ipynb").write_text(notebook(names=names))
    task = bench.derive({"mask": ["data"]})
    assert isinstance(task, DerivedTask)
    assert task.masked_cells == (3,)


@pytest.mark.parametrize(
    ("item", "parent", "before", "after"),
    [
        ({"mask": [2, 4]}, {}, CELLS[:1], CELLS[1:]),
        ({"mask": [2], "goal": "total"}, {}, CELLS[:1], CELLS[1:4]),
        ({"mask": [2]}, {"pre_execute": ["!ls"]}, ["!ls", CELLS[0]], CELLS[1:]),
        ({"mask": [2]}, {"solution": {"cells": [*CELLS, "0"], "answer_cell": 6}}, CELLS[:1], CELLS[1:]),
        ({"mask": [2], "pre_execute": []}, {}, [], CELLS),
        (
            {"mask": [2], "pre_execute": [1, 3, 4]},
            {"solution": {"cells": CELLS}},
            [CELLS[0], *CELLS[2:4]],
            [CELLS[1], *CELLS[4:]],
        ),
        (
            {"mask": [2], "pre_execute": ["count"], "solution": ["end", "data"]},
            {},
            [CELLS[2]],
            [CELLS[1], CELLS[3], CELLS[5]],
        ),
        ({"mask": [2], "goal": 3, "submit": "n"}, {}, CELLS[:1], [*CELLS[1:3], "n"]),
    ],
)
def test_the_prefix_is_all_before_the_mask_and_the_solution_the_rest_up_to_the_goal(
    bench: Masked, item: dict[str, Any], parent: dict[str, Any], before: list[str], after: list[str]
) -> None:
    task = bench.derive(item, **parent)
    assert (prefix(task), solution(task)) == (before, after)


def test_the_prefix_can_be_stated(bench: Masked) -> None:
    edit = {"path": "a.txt", "before": "x", "after": "y"}
    stated = ["count", {"cell": "1 / 0"}, {"edit": edit}, {"solution_cell": 1}]
    task = bench.derive({"mask": [2], "pre_execute": stated})
    assert prefix(task) == [CELLS[2], "1 / 0", None, CELLS[0]]
    assert task.pre_execute[2].edit is not None
    assert task.pre_execute[2].edit.after == "y"
    assert solution(task) == [CELLS[1], *CELLS[3:]]


def test_a_cell_that_leaves_only_files_says_so_by_its_tag_or_its_place(bench: Masked) -> None:
    names = [("imports", ["files"]), *NAMES[1:]]
    (bench.folder / "t.ipynb").write_text(notebook(names=names))
    assert [step.files for step in bench.derive({"mask": [3]}).pre_execute] == [True, False]
    stated = [1, 3, {"solution_cell": 4, "files": True}, {"cell": "x = 1", "files": True}]
    task = bench.derive({"mask": [2], "pre_execute": stated})
    assert [step.files for step in task.pre_execute] == [True, False, True, True]


# What it takes from its parent

FIELDS: dict[str, Any] = {
    "tolerance": 0.5,
    "landmarks": ["found"],
    "entrypoint": {"path": "run.py", "min_seconds": 2},
    "tags": ["text"],
    "repository": {"git": "https://host.example/a.git", "commit": "0" * 40},
}


def test_what_is_not_stated_is_as_in_the_parent_except_metadata(bench: Masked) -> None:
    parent, task = bench.load({"mask": [2]}, **FIELDS, limits={"compute": 60}, metadata={"b": 2})
    assert task.metadata == {}
    for name in [*FIELDS, "answer", "limits", "sandbox"]:
        assert getattr(task, name) == getattr(parent, name)


def test_what_is_stated_goes_before(bench: Masked) -> None:
    own = {
        "tolerance": 0.1,
        "landmarks": [],
        "entrypoint": None,
        "tags": [],
        "answer": 5,
        "metadata": {"a": 1},
    }
    task = bench.derive({"mask": [2], **own}, **FIELDS)
    assert {name: getattr(task, name) for name in own} == own


def test_limits_and_sandbox_are_taken_field_by_field(bench: Masked) -> None:
    task = bench.derive(
        {"mask": [2], "limits": {"steps": 5}, "sandbox": {"network": True}},
        limits={"compute": 60, "steps": 9},
        sandbox={"env": {"A": "1"}},
    )
    assert (task.limits.compute, task.limits.steps) == (60, 5)
    assert (task.sandbox.env, task.sandbox.network) == ({"A": "1"}, True)


def test_an_unknown_answer_is_unknown_in_both_unless_one_is_stated(bench: Masked) -> None:
    assert bench.derive({"mask": [2]}, answer=..., answer_unknown=True).answer_unknown
    task = bench.derive({"mask": [2], "answer": 1}, answer=..., answer_unknown=True)
    assert (task.answer, task.answer_unknown) == (1, False)


# What is wrong

HEAD = """\
id: t
set: expert
query: x
answer: 1
solution: {notebook: t.ipynb}
subproblems:
"""


@pytest.mark.parametrize(
    ("fields", "place", "message"),
    [
        ("mask: [imports, rowz]", "rowz", "no cell has the id or tag `rowz`; did you mean `rows`?"),
        (
            "mask: [zzz]",
            "zzz",
            "no cell has the id or tag `zzz`; known are imports, rows, data, count, total, work, show, end",
        ),
        ("mask: [2], goal: 7", "7", "there is no cell 7: the solution has 6 code cells"),
        ("mask: [1], goal: data", "data}", "`data` means the cells 2, 4, where one is needed"),
        ("mask: [2, 4], goal: rows", "rows", "the goal, cell 2, is masked"),
        ("mask: [2, 4], goal: 3", "3", "the goal, cell 3, comes before the masked cell 4"),
        ("mask: [2], pre_execute: [1, rows, 6]", "rows", "cell 2 is masked, so it is not pre-executed"),
        (
            "mask: [2], pre_execute: [3], solution: [2, 3, 6]",
            "[2, 3",
            "cell 3 is pre-executed, so it is not part of the solution",
        ),
        (
            "mask: [2], goal: 4, solution: [2, 4, 5]",
            "[2, 4",
            "cell 5 comes after the goal, cell 4, so it is not part of the solution",
        ),
        ("mask: [2], solution: [6]", "[6", "cell 2 is masked, so it must be part of the solution"),
        ("mask: [2], solution: [2, 4]", "[2, 4", "cell 6 is the goal, so it must be part of the solution"),
    ],
)
def test_cells_that_do_not_make_a_sub_problem_are_told_at_their_place(
    bench: Masked, fields: str, place: str, message: str
) -> None:
    line = f"  - {{id: a, category: data, query: x, {fields}}}"
    assert bench.errors(f"{HEAD}{line}\n") == [f"t:7:{line.index(place) + 1}: {message}"]


def test_cells_in_the_file_have_no_other_names(bench: Masked) -> None:
    text = HEAD.replace("{notebook: t.ipynb}", "{cells: [a, b]}")
    found = bench.errors(text + "  - {id: a, category: data, query: x, mask: [rows]}\n")
    assert found == ["t:7:46: no cell has the id or tag `rows`; its cells have numbers only"]


def test_an_id_that_stands_twice_is_told(bench: Masked) -> None:
    item = "category: data, query: x, mask: [2]}\n"
    found = bench.errors(HEAD + f"  - {{id: t, {item}  - {{id: b, {item}  - {{id: b, {item}")
    assert found == [
        "t:7:1: the id `t` already appears at line 1",
        "t:9:1: the id `b` already appears at line 8",
    ]


def test_a_sub_problem_needs_a_solution_and_an_answer(bench: Masked) -> None:
    text = HEAD.replace("solution: {notebook: t.ipynb}\n", "")
    found = bench.errors(text + "  - {id: a, category: data, query: x, mask: [2]}\n")
    assert found == ["t:6:3: sub-problems are cut from a `solution`, and the task has none"]
    text = HEAD.replace("set: expert", "set: auto").replace("answer: 1\n", "entrypoint: {path: run.py}\n")
    found = bench.errors(text + "  - {id: a, category: data, query: x, mask: [2]}\n")
    assert found == ["t:7:5: `answer` is missing: a task of the set masked is scored against it"]


def test_an_answer_that_holds_nothing_is_told_once_where_it_stands(bench: Masked) -> None:
    item = "  - {id: a, category: data, query: x, mask: [2]"
    found = bench.errors(HEAD + item + ", answer: null}\n")
    assert found == ["t:7:58: `answer` has no value to compare with"]
    found = bench.errors(HEAD.replace("answer: 1", "answer: null") + item + "}\n")
    assert found == ["t:4:9: `answer` has no value to compare with"]


def test_what_cannot_be_read_in_the_task_is_not_missed_in_its_sub_problems(bench: Masked) -> None:
    text = HEAD.replace("answer: 1", "answer: !odd 1")
    items = [
        f"  - {{id: {id}, category: data, query: x, mask: {mask}}}\n"
        for id, mask in (("a", "[2]"), ("b", "[9]"))
    ]
    found = bench.errors(text + "".join(items))
    assert [line.split(" ")[0] for line in found] == ["t:4:9:", "t:8:46:"]


def test_all_that_is_wrong_is_told_at_once(bench: Masked) -> None:
    found = bench.errors(
        HEAD.replace("query: x\n", "")
        + """\
  - id: a
    category: Data
    mask: [2]
    query: x
  - id: b
    category: data
    mask: [2, [3], 0, true, 1.5]
    query: x
    gaol: 3
  - id: c
    category: data
    mask: []
    query: x
    pre_execute: [{cel: x}, {cell: x, solution_cell: 1}]
"""
    )
    assert [line.split(":", 3)[1] for line in found] == ["1", "7", *["12"] * 4, "14", "17", "19", "19"]
    assert found[0] == "t:1:1: `query` is missing"
    assert found[2] == (
        "t:12:15: `subproblems[1].mask[1]` should be a cell: its number, from 1, its id, or a tag that it has"
    )
    assert found[6] == "t:14:5: unknown field `subproblems[1].gaol`; did you mean `goal`?"
    assert "`subproblems[2].pre_execute[0].cel`; did you mean `cell`?" in "".join(found)


CODE = {"cell_type": "code", "metadata": {}, "outputs": [], "source": "1"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json.dumps({"nbformat": 4, "cells": [CODE, {**CODE, "outputs": 5}]}), ": cell 2 has `outputs` that"),
        (json.dumps({"nbformat": 4, "cells": [CODE, {"source": "1"}]}), ": cell 2 has no `cell_type`"),
        (json.dumps({"nbformat": 4, "cells": [{**CODE, "source": ["1", 2]}]}), ": cell 1 has no `source`"),
        (json.dumps({"nbformat": 4, "cells": [5]}), ": cell 1 is not a JSON object"),
        ('{"nbformat": 4, "cells": {"a": 1}}', ": it has no list `cells`"),
        ('{"cells": []}', ": it has no `nbformat`: save it as format 4"),
        ("[" * 100_000, ": it is not a JSON object"),
    ],
)
def test_what_is_no_notebook_is_told_with_its_file(bench: Masked, text: str, message: str) -> None:
    path = bench.folder / "t.ipynb"
    path.write_text(text)
    (found,) = bench.errors(HEAD + "  - {id: a, category: data, query: x, mask: [2]}\n")
    assert f"{path} is not a notebook{message}" in found


# As other tasks


def test_validate_and_stats_count_sub_problems(bench: Masked, capsys: pytest.CaptureFixture[str]) -> None:
    bench.load({"mask": [2]}, {"id": "t_more", "mask": [4]})
    assert main(["validate", str(bench.folder)]) == 0
    assert capsys.readouterr().out == "3 tasks in 1 file: valid\n"
    assert main(["stats", str(bench.folder)]) == 0
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert {"expert 0 1", "masked 0 2"} <= {*rows}
    assert any(row.startswith("masked 2 ") for row in rows)
