"""What is counted of a collection of tasks: lines of gold code, sets, repositories, categories."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_super.authoring.stats import lines_of_cell
from pytest_super.cli import main


def test_lines_of_a_cell_are_those_that_are_neither_blank_nor_a_comment() -> None:
    assert lines_of_cell("def f():\n    # why\n\n    return 1") == 2
    assert lines_of_cell("%%bash\n# why\ncd src\n\npython train.py") == 3


class Stats:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys

    def task(self, id: str, set: str = "expert", **fields: Any) -> None:
        data: dict[str, Any] = {"id": id, "set": set, "query": "do it", **fields}
        if set != "auto":
            data.setdefault("answer", 1)
        self.folder.joinpath(f"{id}.task.yaml").write_text(json.dumps(data))

    def stats(self) -> list[str]:
        """The lines that are printed, with one blank between two words."""
        assert main(["stats", str(self.folder)]) == 0
        return [" ".join(line.split()) for line in self.capsys.readouterr().out.splitlines()]


@pytest.fixture
def bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Stats:
    return Stats(tmp_path, capsys)


def git(url: str, commit: str = "a") -> dict[str, str]:
    return {"git": url, "commit": commit * 40}


def release(name: str, version: str) -> dict[str, str]:
    return {"pypi": name, "version": version, "sha256": "0" * 64}


def test_sets_are_counted_apart_and_together(bench: Stats) -> None:
    bench.task("a", landmarks=["x", "y"], entrypoint={"path": "a.py"})
    bench.task("a_data", "masked", category="data", landmarks=["x"])
    bench.task("b", "auto", entrypoint={"path": "b.py"}, repository=git("https://x.org/b"))
    lines = bench.stats()
    # Repositories and tasks; then solutions, answers, landmarks and entrypoints.
    for row in ("expert 0 1", "masked 0 1", "auto 1 1", "all 1 3", "auto 0 0 0 1", "all 0 2 2 2"):
        assert row in lines


def test_commits_releases_and_spellings_of_a_repository_are_one(bench: Stats) -> None:
    urls = (
        "https://x.org/A/b",
        "https://x.org/a/b.git",
        "https://x.org/a/b/",
        "git@x.org:a/b.git",
        "ssh://git@x.org/a/b",
    )
    for number, url in enumerate(urls):
        bench.task(f"git{number}", repository=git(url, str(number)))
    bench.task("pypi1", repository=release("Some.Name", "1"))
    bench.task("pypi2", repository=release("some-name", "2"))
    bench.folder.joinpath("code").mkdir()
    bench.task("path", repository={"path": "code"})
    bench.task("none")
    assert "all 3 9" in bench.stats()


def test_sizes_are_means_and_medians_of_the_tasks_that_have_one(bench: Stats) -> None:
    bench.task("a", solution={"cells": ["x = 1\ny = 2", "# why\nx"]}, landmarks=["x"])
    bench.task("b", solution={"cells": ["!ls"] * 4}, landmarks=["x", "y", "z"])
    bench.task("c", solution={"cells": ["%%bash\nls\n\nls\nls\nls\nls\nls\nls"]})
    bench.task("d")
    lines = bench.stats()
    assert "expert 5.0 (4) 2.3 (2) 2.0 (2)" in lines
    assert "expert 3 4 2 0" in lines
    assert not any(line.startswith("categories") for line in lines)


def test_notebooks_are_read(bench: Stats) -> None:
    cells = [
        {"cell_type": "markdown", "source": "# a heading"},
        {"cell_type": "code", "source": ["x = 1\n", "# why\n", "x"]},
        {"cell_type": "code", "source": "\n"},
    ]
    bench.folder.joinpath("a.ipynb").write_text(json.dumps({"nbformat": 4, "cells": cells}))
    bench.task("a", "masked", category="goal", solution={"notebook": "a.ipynb"})
    assert "masked 2.0 (2) 1.0 (1) -" in bench.stats()


def test_errors_of_task_files_are_those_of_validate(bench: Stats) -> None:
    bench.task("a")
    bench.folder.joinpath("b.task.yaml").write_text("id: b\nset: expert\nquery: 1\nanswer: 1\n")
    assert main(["validate", str(bench.folder)]) == 1
    errors = bench.capsys.readouterr().out
    assert "b.task.yaml:3:8: `query`" in errors
    assert main(["stats", str(bench.folder)]) == 1
    assert bench.capsys.readouterr() == ("", f"pytest-super: {errors}")
