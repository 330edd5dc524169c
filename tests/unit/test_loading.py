"""Task files: scalars, schema, and one clear message for each mistake."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.errors import TaskFileError
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.task import Task
from pytest_super.tasks.yaml_reader import MAX_NODES

ITSELF = "4:9: this value contains itself, by an alias"
OPEN_QUOTE = "1:5: broken YAML: while scanning a quoted scalar"
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
        ("no", "no"),
        ("1:30", "1:30"),
        ("012", 12),
        ("0o12", 10),
        ("2020-01-01", "2020-01-01"),
        ("true", True),
        ("null", None),
        ("'1'", "1"),
        (".inf", float("inf")),
        # A tag can state the type.
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("!!map {'<<': 1}", {"<<": 1}),
    ],
)
def test_a_value_is_read_as_json_and_yaml_1_2_read_it(load: Any, written: str, value: object) -> None:
    [task] = load(f"id: a\nset: expert\nquery: do it\nanswer: {{v: {written}, x: 1}}\n")
    assert task.answer["v"] == value
    assert type(task.answer["v"]) is type(value)


# YAML has no pairs of surrogates for what lies beyond the basic plane, and no keys of over 1,024 characters.
TEXT = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=20)
JSON = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda children: st.lists(children | st.none(), min_size=1) | st.dictionaries(TEXT, children, min_size=1),
    max_leaves=10,
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
        ("- a\n- b\n", "1:1: a task is a mapping of fields"),
        ("id: [\n", "broken YAML"),
        ("id: a\n\tset: b\n", "broken YAML"),
        (MINIMAL + "id: b\n", "5:1: the key `id` appears twice"),
        (MINIMAL + "answer2: !!python/object:os.system {}\n", "unknown field"),
        (MINIMAL.replace("answer: 1", "answer: !foo x"), "the tag !foo is not supported here"),
        (MINIMAL.replace("answer: 1\n", ""), "`answer` is missing"),
        (MINIMAL.replace("answer: 1", "answer: null"), "`answer` has no value"),
        (MINIMAL + "landmarks: ['(?:a{400}){251}']\n", "5:13: `landmarks[0]` repeats more than 100,000 "),
        (MINIMAL + "solution: {notebook: gone.ipynb}\n", "5:22: the notebook"),
        (MINIMAL + "solution: {cells: ['1'], answer_cell: 2}\n", "there are 1 code cells"),
        (MINIMAL + "repository: {path: ../other}\n", "stays in its folder"),
        (MINIMAL + "pre_execute: [{cell: x, edit: {path: a, before: b, after: c}}]\n", "one of cell, edit"),
        (MINIMAL + "answer_unknown: true\n", "5:17: `answer_unknown` is true"),
        (MINIMAL + 'sandbox: {env: {a: "\\0"}}\n', "5:16: `sandbox.env` has the variable 'a'"),
        (MINIMAL + f"answer3: {'9' * 5000}\n", "5,000 digits"),
        (MINIMAL + "--- \n" + MINIMAL, "the id `a` already appears at line 1"),
    ],
)  # fmt: skip
def test_a_mistake_has_one_clear_message(load: Any, text: str, message: str) -> None:
    assert any(message in error for error in errors_of(load, text))


def test_a_pattern_of_which_re_warns_is_no_mistake(load: Any) -> None:
    # These tests turn warnings into errors.
    [task] = load(MINIMAL + "landmarks: ['[[:ascii:]]']\n")
    assert task.landmarks == ["[[:ascii:]]"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id: a\nset: auto\nquery: q\nentrypoint: {pathh: x, path: y}\n", "4:14: "),
        (
            "id: a\nset: auto\nquery: q\nentrypoint:\n  path: src/train.cpp\n",
            "5:9: no process runs src/train.cpp itself: name the program that is built from it",
        ),
        ("id: !foo a\nset: expert\nquery: q\nanswer: x\n", "1:5: "),
        (MINIMAL.replace("id: a", "id: a/b") + "---\n" + MINIMAL, "1:5: "),
        (MINIMAL.replace("1", "\n  a: &a {x: 1}\n  b:\n    <<: *a\n    y: 2"), "7:5: merge keys (`<<`)"),
        (MINIMAL.replace("1", "&a [*a]"), ITSELF),
        (MINIMAL.replace("1", "&a [&b [*a], *b]"), ITSELF),
        ("id: 'a\nset: expert\nquery: x\n", OPEN_QUOTE),
        ('id: "a\nset: expert\nquery: x\n', OPEN_QUOTE),
        (b"id: a\nquery: caf\xe9\n", "2:11: not UTF-8 (byte 0xe9)"),
        (b"#" * 17_000_000, "1:1: the file has 17,000,000 bytes"),
        ("answer: \n " + "[1-1," * 900, "2:497: lists and mappings are nested more than 100 deep"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_an_error_is_told_at_its_place_without_what_only_follows_from_it(
    load: Any, text: str | bytes, message: str
) -> None:
    [error] = errors_of(load, text)
    assert error.startswith(f"t.task.yaml:{message}")


@pytest.mark.parametrize(
    "written", ["!!bool yes", "!!str [a]", "!!binary aGk=", "!!python/object/apply:os.system [x]", "!foo [x]"]
)
@pytest.mark.parametrize("before", ["", "k: "])
def test_a_tag_that_does_not_fit_is_refused_at_its_place(load: Any, written: str, before: str) -> None:
    [error] = errors_of(
        load, f"id: a\nset: expert\nquery: do it\nanswer: {{{before or '? '}{written}, b: 1}}\n"
    )
    assert error.startswith(f"t.task.yaml:4:{10 + len(before or '? ')}: ")


def nested(depth: int) -> dict[str, str]:
    blocks = "".join(f"\n{' ' * n}-" for n in range(1, depth + 1))
    keys = "".join(f"\n{' ' * n}k:" for n in range(1, depth + 1))
    chain = "".join(f"- &l{n} [*l{n - 1}]\n" for n in range(1, depth))
    return {
        "lists": "[" * depth + "]" * depth,
        "mappings": "{k: " * depth + "1" + "}" * depth,
        "block lists": blocks,
        "compact lists": "\n " + "- " * depth + "x",
        "block mappings": keys,
        "keys": "\n " + "? " * depth + "x",
        "aliases": f"\n- &l0 [x]\n{chain}",
    }


@pytest.mark.parametrize("kind", nested(1))
@pytest.mark.parametrize("depth", [101, 4_000])
def test_a_value_that_is_nested_too_deeply_is_refused(load: Any, kind: str, depth: int) -> None:
    errors = errors_of(load, MINIMAL.replace("answer: 1\n", f"answer: {nested(depth)[kind]}\n"))
    expected = "a key must be plain text" if kind == "keys" and depth < 1_000 else "nested more than 100 deep"
    assert [error for error in errors if expected in error], errors


def test_aliases_cannot_expand_without_end(load: Any) -> None:
    levels = "".join(f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 10))
    errors = errors_of(load, MINIMAL.replace("answer: 1\n", "answer:\n  l0: &l0 [x]\n" + levels))
    assert "aliases" in errors[0]


def test_a_repository_folder_with_the_gold_in_it_is_refused(load: Any, tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "x.task.yaml").write_text(MINIMAL)
    assert "contains task files" in errors_of(load, MINIMAL + "repository: {path: repo}\n")[0]
    (tmp_path / "repo" / "x.task.yaml").unlink()
    notebook = {"nbformat": 4, "cells": [{"cell_type": "code", "source": ["1"]}]}
    (tmp_path / "repo" / "s.ipynb").write_text(json.dumps(notebook))
    text = MINIMAL + "repository: {path: repo}\nsolution: {notebook: repo/s.ipynb}\n"
    assert "contains the solution" in errors_of(load, text)[0]


def test_sizes_and_string_cells_are_understood(load: Any) -> None:
    [task] = load(MINIMAL + "sandbox: {memory: 1.5g, disk: 1048576}\npre_execute: ['x = 1']\n")
    assert (task.sandbox.memory, task.sandbox.disk) == (3 * 2**29, 2**20)
    assert task.pre_execute[0].cell == "x = 1"


@pytest.mark.parametrize(
    ("written", "column"), [("! 5", 9), ("! '5'", 9), ("&a ! 5", 12), ("{! 5: 6}", 10), ("!\n  - 5", 9)]
)
def test_a_tag_that_says_nothing_is_refused_and_does_not_turn_text_into_a_number(
    load: Any, written: str, column: int
) -> None:
    errors = errors_of(load, f"id: a\nset: expert\nqeury: do it\nanswer: {written}\n")
    assert errors[-1] == f"t.task.yaml:4:{column}: the tag ! is not supported here"
    assert len(errors) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("most", "start", "unit", "end"),
    [
        (MAX_NODES, "landmarks: [", "a,", "a]"),
        (MAX_NODES // 20, "answer2: [", "[],", "[]]"),
        (MAX_NODES // 20, "metadata: {", "? a,", "}"),
        (MAX_NODES // 20, "landmarks:", "\n- 0", ""),
        (MAX_NODES // 20, "", "---\n", ""),
    ],
    ids=["flow", "nested", "keys", "block", "documents"],
)
def test_a_file_of_very_many_values_is_refused_while_it_is_parsed(
    load: Any, monkeypatch: pytest.MonkeyPatch, most: int, start: str, unit: str, end: str
) -> None:
    monkeypatch.setattr("pytest_super.tasks.yaml_reader.MAX_NODES", most)
    (error,) = errors_of(load, (MINIMAL + start + unit * most + end).encode())
    wanted = "the file has more than 400,000 keys and values: keep data in other files"
    assert error == f"t.task.yaml:1:1: {wanted}"
