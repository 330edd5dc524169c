"""A project with a stored run, for tests of the commands that read stored runs."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import TaskFolder

# Solves every task whose answer is 42, and prints what landmarks look for.
AGENT = """
from pathlib import Path

class Agent:
    def run(self, trial):
        with open(Path(__file__).with_name("ran.txt"), "a") as file:
            file.write(trial.task.id + " ")
        trial.execute("print('all done')")
        trial.submit(42)
"""
# Errors are of the infrastructure, and a metric of the project depends on the answer.
CONFTEST = """
from pytest_super.metrics import Metric

def pytest_super_metrics():
    return [Metric(name="steps_taken", compute=lambda task, evidence: len(evidence.steps))]

def pytest_super_trial_finished(result):
    if result.id == "broken":
        raise ValueError("no disk")
"""


class Stored(TaskFolder):
    """A project with one run in which the answer of the task `wrong` was wrong."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.runs = path / ".super/runs"

    def add(self, id: str, **fields: Any) -> None:
        task = {"id": id, "set": "expert", "query": "What is it?", "answer": 42, **fields}
        (self.path / f"{id}.task.yaml").write_text(yaml.safe_dump(task))

    def pytest(self, *options: str) -> tuple[subprocess.CompletedProcess[str], str]:
        """The run, and the tasks that really ran."""
        (self.path / "ran.txt").write_text("")
        ran = self.python("-m", "pytest", "--super-agent=mine:Agent", "--super-dir=.super", *options, ".")
        return ran, " ".join(sorted((self.path / "ran.txt").read_text().split()))

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments], cwd=self.path, text=True, capture_output=True, check=False
        )

    @classmethod
    def make(cls, path: Path) -> Stored:
        bench = cls(path)
        (path / "pytest.ini").write_text("[pytest]\nsuper_sandbox = local\npythonpath = .\n")
        (path / "mine.py").write_text(AGENT)
        (path / "conftest.py").write_text(CONFTEST)
        bench.add("wrong", answer=41)
        for id in ("broken", "right"):
            bench.add(id)
        _, ran = bench.pytest()
        assert ran == "broken right wrong"
        return bench

    def copy(self, path: Path) -> Stored:
        shutil.copytree(self.path, path, symlinks=True)
        return Stored(path)

    @property
    def latest(self) -> Path:
        return (self.runs / "latest").resolve()

    def rescore(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.command("rescore", ".super/runs/latest", "--tasks=.", "--write", *arguments)

    def rescored(self, *arguments: str) -> Path:
        """The folder of a new run that is written."""
        done = self.rescore(*arguments)
        assert done.returncode == 0, done.stderr + done.stdout
        return folder_of(done)


def folder_of(done: subprocess.CompletedProcess[str]) -> Path:
    return Path(done.stdout.splitlines()[-1].removeprefix("results: "))


def rows(run: Path) -> dict[str, dict[str, Any]]:
    found = map(json.loads, (run / "results.jsonl").read_text().splitlines())
    return {row["id"]: row for row in found}


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
