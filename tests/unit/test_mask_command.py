"""`pytest-super mask`: proposals for the author to complete, and the proof of what is there."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_super.authoring.masking.proof import Proof, prove
from pytest_super.cli import main
from pytest_super.kernel.client import Kernel
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.subproblems import DerivedTask
from pytest_super.tasks.task import Task
from pytest_super.testing import FakeKernel


def code(source: str, *tags: str, failed: bool = False, id: str | None = None) -> dict[str, Any]:
    outputs = [{"output_type": "error", "ename": "E", "evalue": "", "traceback": []}] if failed else []
    cell = {"cell_type": "code", "metadata": {"tags": list(tags)}, "outputs": outputs, "source": source}
    return {**cell, "id": id} if id else cell


def text(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


class Masks:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys

    def write(self, *cells: dict[str, Any]) -> Path:
        path = self.folder / "nb.ipynb"
        path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}))
        return path

    def propose(self, *cells: dict[str, Any]) -> str:
        assert main(["mask", str(self.write(*cells))]) == 0
        return self.capsys.readouterr().out

    def blocks(self, *cells: dict[str, Any]) -> dict[str, list[int | str]]:
        """What is masked, by id of the sub-problem; the proposal is loaded to know it."""
        path = self.folder / "nb.task.yaml"
        path.write_text(self.propose(*cells))
        parent, *tasks = load_tasks(path)
        assert all(isinstance(task, DerivedTask) for task in tasks)
        return {item.id: item.mask for item in parent.subproblems}


@pytest.fixture
def bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Masks:
    return Masks(tmp_path, capsys)


# Proposals


def test_cells_with_the_tag_of_a_category_make_a_block(bench: Masks) -> None:
    found = bench.blocks(
        code("a = 1", "data"),
        code("b = 2", "issue-shapes", id="fix"),
        code("c = 3", "data", "other"),
        code("%pip install torch"),
        code("a + b + c"),
    )
    assert found == {"nb_data": [1, 3], "nb_issue-shapes": ["fix"], "nb_other": [3]}


@pytest.mark.parametrize(
    ("category", "source"),
    [
        ("dependencies", "%pip install torch==1.2"),
        ("cpu", "!sed -i 's/cuda/cpu/' repo/train.py"),
        ("configuration", "%%writefile repo/config.yaml\nepochs: 3"),
        ("configuration", "!sed -i 's/epochs=90/epochs=2/' repo/train.py"),
        ("data", "!wget https://host.example/data.zip"),
        ("issue", "# np.int is gone\n!sed -i 's/np.int/int/' repo/train.py"),
    ],
)
def test_cells_without_tags_are_known_by_what_is_in_them(bench: Masks, category: str, source: str) -> None:
    found = bench.blocks(
        code("import json"), code(source), code("print(1)"), code("!python repo/train.py"), code("5")
    )
    assert found == {f"nb_{category}": [2], "nb_goal": [4]}


def test_an_edit_after_a_failed_cell_or_a_text_about_trouble_deals_with_an_issue(bench: Masks) -> None:
    failing = [code("!python a.py", failed=True), code("!sed -i s/seed/x/ a.py")]
    assert "nb_issue" in bench.blocks(*failing, code("5"))
    assert "nb_configuration" in bench.blocks(code("1"), failing[1], code("5"))
    # Also before cells that only look.
    cells = [
        text("Removed in numpy 2: `np.mat`."),
        code("!grep mat lib/*"),
        code("!sed -i s/a/b/ lib/x"),
        code("5"),
    ]
    assert bench.blocks(*cells) == {"nb_issue": [2]}


def test_what_leads_from_the_last_program_to_the_answer_is_the_goal(bench: Masks) -> None:
    cells = [
        code("!python try.py"),
        code("%pip install x"),
        code("!python a.py"),
        code("a = open('log').read()"),
    ]
    assert bench.blocks(*cells, code("a")) == {"nb_dependencies": [2], "nb_goal": [3, 4]}


def test_a_proposal_says_why_and_what_it_comes_to_and_asks_for_what_is_missing(bench: Masks) -> None:
    out = bench.propose(
        code("import json"), code("rows = pandas.read_csv('a.csv')"), code("n = 3"), code("(rows, n)")
    )
    assert "  # cell 2 has `read_csv`: rows = pandas.read_csv('a.csv')\n" in out
    assert "  # runs before: 1; the solution: 2, 3, 4\n" in out
    assert "I have already executed some of the required steps" in out
    assert out.count("TODO") > 4
    out = bench.propose(code("1"), code("2"))
    assert "subproblems:" not in out
    assert "give cells the tag of a category" in out


def test_a_task_file_gives_the_field_alone(bench: Masks) -> None:
    bench.write(code("%pip install x"), code("x = 1"), code("x"))
    path = bench.folder / "t.task.yaml"
    path.write_text(
        "id: a\nset: expert\nquery: q\nanswer: 1\nsolution: {notebook: nb.ipynb}\n"
        "---\nid: b\nset: expert\nquery: q\nanswer: 1\nsolution: {cells: ['!wget https://h.example', '2']}\n"
        "---\nid: c\nset: expert\nquery: q\nanswer: 1\n"
    )
    assert main(["mask", str(path)]) == 0
    out = bench.capsys.readouterr().out
    assert "\nsolution:" not in out
    assert [line for line in out.splitlines() if line.startswith("  - id")] == [
        "  - id: a_dependencies",
        "  - id: a_goal",
        "  - id: b_data",
    ]


@pytest.mark.parametrize(
    ("name", "id"), [("My notes (1)", "My-notes-1-"), ("_draft", "draft"), ("-", "task")]
)
def test_a_notebook_of_any_name_gives_a_task_that_can_be_loaded(bench: Masks, name: str, id: str) -> None:
    notebook = bench.write(code("%pip install x"), code("1")).rename(bench.folder / f"{name}.ipynb")
    output = bench.folder / "out.task.yaml"
    assert main(["mask", str(notebook)]) == 0
    output.write_text(bench.capsys.readouterr().out)
    assert [task.id for task in load_tasks(output)] == [id, f"{id}_dependencies"]


@pytest.mark.parametrize("sign", ["\r", "\u2028", "\ud800"])
def test_no_sign_in_a_tag_ends_a_comment(bench: Masks, sign: str) -> None:
    out = bench.propose(code("x = 1", f"data{sign}-", f"data-{sign}evil: 1"), code("x"))
    assert sign not in out
    assert bench.blocks(code("x = 1", f"data-{sign}evil: 1"), code("x")) == {"nb_data-_evil__1": [1]}


# The proof


class Shop:
    """Kernels without a process, and the proof of a sub-problem in them."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "t.task.yaml"
        self.kernels: list[FakeKernel] = []

    def start(self, _task: Task) -> Kernel:
        self.kernels.append(FakeKernel())
        return cast("Kernel", self.kernels[-1])

    def prove(self, cells: list[str], mask: list[int], answer: Any = 3, **fields: Any) -> Proof:
        item = {"id": "a_data", "category": "data", "query": "q", "mask": mask, **fields}
        data = {"id": "a", "set": "expert", "query": "q", "answer": answer, "solution": {"cells": cells}}
        self.path.write_text(json.dumps({**data, "subproblems": [item]}))
        (_, task) = load_tasks(self.path)
        assert isinstance(task, DerivedTask)
        return prove(task, self.start)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_proven_is_what_the_mask_alone_makes_right_each_time_in_a_new_kernel(shop: Shop) -> None:
    proof = shop.prove(["y = 1", "x = 2", "x + y"], [2])
    assert proof.is_proven
    assert "cell 3 failed: NameError: name 'x' is not defined" in proof.reason
    assert [kernel.is_closed for kernel in shop.kernels] == [True, True]


RIGHT = "the answer is the gold one"
NONE = "with the masked cells there is no answer"
ZERO = "ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("cells", "fields", "is_proven", "reason"),
    [
        (["x = 1", "x += 2", "x"], {}, True, f"with the masked cell 2 {RIGHT}; without: accuracy is 0.00"),
        (["x = 3", "y = x", "x"], {}, False, f"without the masked cell 2 {RIGHT}, too"),
        (["x = 2", "y = 1", "[x, 3]"], {}, False, "with the masked cells accuracy is 0.00"),
        (["0", "x = 3", "x"], {"submit": "1 / 0"}, False, f"{NONE} (`submit` failed: {ZERO})"),
        # A cell that fails before the mask may be what is to be solved.
        (["1 / 0", "x = 3", "x"], {}, True, f"with the masked cell 2 {RIGHT}; without: there is no answer"),
        # A pre-executed cell that failed is named where it can be the reason.
        (
            ["a = 1", "b = 2", "c = 1 / 0", "a + b + c"],
            {"pre_execute": [1, 3]},
            False,
            f"{NONE} (cell 4 failed: NameError: name 'c' is not defined, "
            f"after pre-executed step 2 failed: {ZERO})",
        ),
        (
            ["0", "x = 3", "sleep(50)\nx"],
            {"limits": {"compute": 20}},
            False,
            f"{NONE} (cell 3 failed: [The cell",
        ),
        (["0", "die()", "3"], {}, False, f"{NONE} (cell 2 failed: [The kernel died"),
        (["0", "fail_engine()", "3"], {}, False, "the engine does not answer"),
    ],
)
def test_the_answer_must_be_right_with_the_mask_and_wrong_without(
    shop: Shop, cells: list[str], fields: dict[str, Any], is_proven: bool, reason: str
) -> None:
    proof = shop.prove(cells, [2], **fields)
    assert proof.is_proven == is_proven
    assert proof.reason.startswith(reason)
    assert all(kernel.is_closed for kernel in shop.kernels)


def test_tolerance_and_submit_count(shop: Shop) -> None:
    cells = ["x = 2", "print(x)"]
    assert shop.prove(cells, [1], answer=2.2, tolerance=0.3, submit="x").is_proven
    assert not shop.prove(cells, [1], answer=2.2, tolerance=0.1, submit="x").is_proven


def test_a_task_without_an_answer_cannot_be_proven(shop: Shop) -> None:
    shop.path.write_text(
        "id: a\nset: expert\nquery: q\nanswer_unknown: true\nsolution: {cells: ['1', '2']}\n"
        "subproblems: [{id: b, category: data, query: q, mask: [1]}]\n"
    )
    (_, task) = load_tasks(shop.path)
    assert isinstance(task, DerivedTask)
    assert prove(task, shop.start) == Proof(is_proven=False, reason="its answer is not known")


CELLS = "solution: {cells: ['1', '2']}\n"
MASKED = CELLS + "subproblems: [{id: b, category: data, query: q, mask: [1]}]\n"


@pytest.mark.parametrize(
    ("fields", "arguments", "message"),
    [
        ("", [], "no task in it has a solution"),
        (MASKED, ["--image=c", "--pip-config=d"], "--sandbox, --image and --pip-config are for --check"),
        (MASKED, ["--sandbox=local"], "--sandbox, --image and --pip-config are for --check"),
        (MASKED, ["--output=t.yaml"], "--output is for the masked copy of a folder"),
        (CELLS, ["--check"], "it has no `subproblems`"),
        (MASKED, ["--check", "--sandbox=docker"], "unix:///nonexistent"),
    ],
)
def test_what_there_is_not_cannot_be_masked_or_checked_or_used(
    shop: Shop,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    fields: str,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent")
    shop.path.write_text(f"id: a\nset: expert\nquery: q\nanswer: 1\n{fields}")
    assert main(["mask", str(shop.path), *arguments]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert message in told.err
