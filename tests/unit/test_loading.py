"""Task files: scalars, schema, and one clear message for each mistake."""

from __future__ import annotations

import json
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.errors import TaskFileError
from pytest_super.loading import load_tasks

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_super.task import Task

MINIMAL = "id: a\nset: expert\nquery: do it\nanswer: 1\n"


@pytest.fixture
def load(tmp_path: Path) -> Any:
    def write_and_load(text: str | bytes) -> list[Task]:
        data = text if isinstance(text, bytes) else dedent(text).encode()
        (tmp_path / "t.task.yaml").write_bytes(data)
        return load_tasks(tmp_path / "t.task.yaml", shown="t.task.yaml")

    return write_and_load


def errors_of(load: Any, text: str | bytes) -> list[str]:
    with pytest.raises(TaskFileError) as caught:
        load(text)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("5e-05", 5e-05),
        ("1e-3", 1e-3),
        ("-.5", -0.5),
        ("1.", 1.0),
        ("no", "no"),
        ("off", "off"),
        ("1:30", "1:30"),
        ("012", 12),
        ("0o12", 10),
        ("0x1F", 31),
        ("2020-01-01", "2020-01-01"),
        ("true", True),
        ("True", True),
        ("null", None),
        ("~", None),
        ("''", ""),
        ("'1'", "1"),
        ("1_000", "1_000"),
        (".inf", float("inf")),
        ("-.inf", float("-inf")),
    ],
)
def test_a_scalar_is_read_as_json_and_yaml_1_2_read_it(load: Any, written: str, value: object) -> None:
    [task] = load(f"id: a\nset: expert\nquery: do it\nanswer: {{v: {written}, x: 1}}\n")
    assert task.answer["v"] == value
    assert type(task.answer["v"]) is type(value)


# YAML has no pairs of surrogates for what lies beyond the basic plane, and no keys of over 1,024 characters.
TEXT = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=20)
JSON = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda children: st.lists(children | st.none(), min_size=1) | st.dictionaries(TEXT, children, min_size=1),
)


@given(JSON)
def test_any_json_answer_survives_the_file(tmp_path_factory: pytest.TempPathFactory, answer: object) -> None:
    path = tmp_path_factory.mktemp("json") / "t.task.yaml"
    path.write_text(json.dumps({"id": "a", "set": "expert", "query": "do it", "answer": answer}))
    [task] = load_tasks(path)
    assert task.answer == answer


def test_ids_and_versions_are_their_source_text(load: Any) -> None:
    sha = "0" * 64
    [task] = load(
        f"id: 2205.00048\nset: expert\nquery: do it\nanswer: 1\n"
        f"repository: {{pypi: x, version: 1.10, sha256: {sha}}}\nsandbox: {{env: {{A: 010}}}}\n"
    )
    assert task.id == "2205.00048"
    assert task.repository.version == "1.10"
    assert task.repository.sha256 == sha
    assert task.sandbox.env == {"A": "010"}


def test_several_documents_are_several_tasks(load: Any) -> None:
    assert [task.id for task in load(MINIMAL + "---\n" + MINIMAL.replace("id: a", "id: b"))] == ["a", "b"]


def test_all_errors_of_a_file_are_told_at_once_with_their_places(load: Any) -> None:
    errors = errors_of(
        load,
        """\
        id: 'b/c'
        set: expert
        qeury: hi
        answer: 1
        landmarks: ['(', ok]
        limits: {compute: soon, celll: 3}
        repository: {pypi: x}
        ---
        id: d
        set: nonsense
        query: hi
        """,
    )
    places = [error.split(": ")[0] for error in errors]
    assert places == [
        f"t.task.yaml:{at}" for at in ("1:1", "1:5", "3:1", "5:13", "6:19", "6:25", "7:13", "10:6")
    ]
    assert "did you mean `query`?" in errors[2]
    assert "not a regular expression" in errors[3]
    assert "did you mean `cell`?" in errors[5]
    assert "version and sha256" in errors[6]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.task.yaml:1:1: there is no task in this file"),
        ("# only a comment\n", "there is no task in this file"),
        ("- a\n- b\n", "1:1: a task is a mapping of fields"),
        ("id: [\n", "broken YAML"),
        ("id: a\n\tset: b\n", "broken YAML"),
        (MINIMAL + "id: b\n", "5:1: the key `id` stands twice"),
        (MINIMAL + "answer2: !!python/object:os.system {}\n", "unknown field"),
        (MINIMAL.replace("answer: 1", "answer: !foo x"), "the tag !foo is not for task files"),
        (MINIMAL.replace("answer: 1\n", ""), "`answer` is missing"),
        (MINIMAL.replace("answer: 1", "answer: {a: []}"), "4:9: `answer` holds no value"),
        (MINIMAL.replace("answer: 1", "answer: null"), "`answer` holds no value"),
        (MINIMAL.replace("expert", "masked"), "needs a `category`"),
        ("id: a\nset: auto\nquery: run it\n", "needs an `entrypoint`"),
        (MINIMAL + "solution: {notebook: gone.ipynb}\n", "5:22: the notebook"),
        (MINIMAL + "solution: {cells: ['1'], answer_cell: 2}\n", "there are 1 code cells"),
        (MINIMAL + "solution: {cells: []}\n", "5:19"),
        (MINIMAL + "repository: {path: gone}\n", "there is no folder"),
        (MINIMAL + "repository: {path: ../other}\n", "stays in its folder"),
        (MINIMAL + "repository: {git: u, pypi: v}\n", "exactly one of git, pypi, path"),
        (MINIMAL + "pre_execute: [{cell: x, edit: {path: a, before: b, after: c}}]\n", "one of cell, edit"),
        (MINIMAL + "tolerance: -1\n", "greater than or equal to 0"),
        (MINIMAL + "tolerance: .nan\n", "finite"),
        (MINIMAL + "sandbox: {memory: much}\n", "512m or 4g"),
        (MINIMAL + f"answer3: {'9' * 5000}\n", "5,000 digits"),
        (MINIMAL + "--- \n" + MINIMAL, "the id `a` stands already at line 1"),
    ],
)  # fmt: skip
def test_a_mistake_has_one_clear_message(load: Any, text: str, message: str) -> None:
    assert any(message in error for error in errors_of(load, text))


def test_a_file_that_is_not_utf8_is_told_with_the_byte(load: Any) -> None:
    [error] = errors_of(load, b"id: a\nquery: caf\xe9\n")
    assert error.startswith("t.task.yaml:2:11: not UTF-8 (byte 0xe9)")


def test_a_huge_file_is_refused_before_it_is_parsed(load: Any) -> None:
    [error] = errors_of(load, b"#" * 50_000_000)
    assert "50,000,000 bytes" in error


def test_aliases_cannot_expand_without_end(load: Any) -> None:
    levels = "".join(f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 10))
    errors = errors_of(load, MINIMAL.replace("answer: 1\n", "answer:\n  l0: &l0 [x]\n" + levels))
    assert "aliases" in errors[0]


def test_a_repository_folder_with_the_gold_in_it_is_refused(load: Any, tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "x.task.yaml").write_text(MINIMAL)
    assert "holds task files" in errors_of(load, MINIMAL + "repository: {path: repo}\n")[0]
    (tmp_path / "repo" / "x.task.yaml").unlink()
    notebook = {"nbformat": 4, "cells": [{"cell_type": "code", "source": ["1"]}]}
    (tmp_path / "repo" / "s.ipynb").write_text(json.dumps(notebook))
    text = MINIMAL + "repository: {path: repo}\nsolution: {notebook: repo/s.ipynb}\n"
    assert "holds the solution" in errors_of(load, text)[0]


def test_sizes_and_string_cells_are_understood(load: Any) -> None:
    [task] = load(MINIMAL + "sandbox: {memory: 1.5g, disk: 1048576}\npre_execute: ['x = 1']\n")
    assert (task.sandbox.memory, task.sandbox.disk) == (3 * 2**29, 2**20)
    assert task.pre_execute[0].cell == "x = 1"


def test_the_papers_limits_are_the_defaults(load: Any) -> None:
    [task] = load(MINIMAL)
    assert (task.limits.compute, task.limits.cell, task.tolerance) == (1800, 300, 0.01)
