"""What else in a folder gives masked bodies away."""

import json
from pathlib import Path

import pytest

from pytest_super.cli import main
from pytest_super.functions.leaks import Leak, find_leaks, gold_of
from pytest_super.functions.masking import masked_files, write_masked

BODY = """\
    total_weight = sum(weights) or 1.0
    centred_values = [value - mean(values) for value in values]
    # The weights are normalised.
    return sum(w * c ** 2 for w, c in zip(weights, centred_values)) / total_weight
"""
MODEL = f"def mean(values): return sum(values) / len(values)\n\ndef variance(values, weights):\n{BODY}"


def leaks(folder: Path, files: dict[str, str]) -> list[Leak]:
    (folder / "model.py").write_text(MODEL)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    made = masked_files(folder, ["model.py::variance"])
    write_masked(folder, None, made)
    masked = made["model.py"]
    return list(find_leaks(folder, [gold_of("model.py::variance", one.body) for one in masked.functions]))


def test_the_masked_folder_itself_gives_nothing_away(tmp_path: Path) -> None:
    assert leaks(tmp_path, {"README.md": "Run `python model.py`.", "data.bin": "\0\1"}) == []


RENAMED = (
    MODEL.replace("variance", "spread").replace("total_weight", "whole").replace("centred_values", "rest")
)


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("old/model.py", MODEL, "copy"),
        ("other.py", RENAMED, "copy"),
        ("README.md", f"As in this code:\n\n{BODY}", "lines"),
        ("notes.py", "".join(f"# {line}\n" for line in BODY.splitlines()), "lines"),
        ("a.ipynb", json.dumps({"cells": [{"cell_type": "code", "source": BODY.splitlines(True)}]}), "lines"),
        ("b.ipynb", "not JSON\n" + BODY, "lines"),
        ("model.py.orig", "", "file"),
        ("__pycache__/model.cpython-311.pyc", "", "file"),
        (".git/objects/pack", "", "file"),
    ],
)
def test_a_leak_is_found_once_by_its_kind(tmp_path: Path, name: str, text: str, kind: str) -> None:
    found = leaks(tmp_path, {name: text})
    assert kind in {leak.kind for leak in found}
    folder = name.partition("/")[0]
    assert {leak.path for leak in found} == {folder if folder in (".git", "__pycache__") else name}


def test_lines_are_named_by_their_numbers_but_in_notebooks(tmp_path: Path) -> None:
    notebook = json.dumps({"cells": [{"cell_type": "code", "source": BODY.splitlines(True)}]})
    (one, other) = leaks(tmp_path, {"a.md": f"As in this code:\n\n{BODY}", "b.ipynb": notebook})
    assert one.detail == "it has 4 of the 4 long lines: lines 3, 4, 5, 6"
    assert other.detail == "it has 4 of the 4 long lines"


@pytest.mark.parametrize(
    "text",
    [
        "def other(values):\n    return sorted(v for v in values if v is not None)[: len(values) // 2 + 1]\n",
        "    total_weight = sum(weights) or 1.0\n",
        "def broken(:\n",
    ],
)
def test_other_code_and_one_equal_line_are_no_leak(tmp_path: Path, text: str) -> None:
    assert leaks(tmp_path, {"other.py": text}) == []


def test_only_backups_of_python_or_of_unknown_files_are_old_code(tmp_path: Path) -> None:
    names = ["model.py.orig", "model.bak", "model.OLD", "model.pyx~", "a.ipynb.orig"]
    others = ["pyproject.toml.orig", "README.md~", "setup.cfg.bak"]
    assert [leak.path for leak in leaks(tmp_path, dict.fromkeys([*names, *others], ""))] == sorted(names)


def test_the_command_reports_leaks_with_exit_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "copy.py").write_text(MODEL)
    output = tmp_path.with_name("masked")
    command = ["mask", str(tmp_path), "--target=model.py::variance", f"--output={output}"]
    assert main([*command, "--leaks", f"--json={tmp_path / 'out.json'}"]) == 1
    text = "leak: copy.py: `variance` has 100% of the tokens (model.py::variance)"
    assert text in capsys.readouterr().out.splitlines()
    kinds = [leak["kind"] for leak in json.loads((tmp_path / "out.json").read_text())["leaks"]]
    assert kinds == ["copy"]
