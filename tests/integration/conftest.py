"""A project with tasks on a fake kernel, run by a pytest of its own."""

import json
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pytest_super.kernel.providers import bubblewrap, bwrap
from pytest_super.kernel.providers.docker import engine
from pytest_super.store.answers import FILE, read_answers
from tests.conftest import TaskFolder
from tests.conftest import read_lines as read_lines
from tests.integration.stored_runs import Stored

# One worker reports to its controller as several do.
WITH_AND_WITHOUT_XDIST = pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["", "n1"])

# Commands that leave no answer in the answer file $A, and what the program's step says about it.
NO_ANSWERS = {
    "broken": ("echo '{broken' > $A", "is not JSON"),
    "large": ("truncate -s 1G $A", "Larger than"),
    "bytes": ("printf '\\377' > $A", "is not JSON"),
    "deep": ("python -c \"print('['*100000)\" > $A", "is not JSON"),
    "pipe": ("mkfifo $A", "Not a regular file"),
    "folder": ("mkdir $A", "Is a directory"),
}

# By a fake kernel.
UNSEEN = "processes, files outside of the working directory, files outside of the sandbox's folder"
FAKE_KERNELS = """
import pytest
from pytest_super.testing import FakeKernel

@pytest.fixture
def super_make_kernel():
    return FakeKernel
"""

# Answers per task id, what a scripted agent does.
AGENT = """
import os, signal
from pathlib import Path

class Agent:
    def run(self, trial):
        id = trial.task.id
        if id.startswith("wrong"):
            trial.execute("print('half', 'way')")
            trial.submit(0)
        elif id.startswith("raises"):
            raise ValueError("agent bug")
        elif id.startswith("silent"):
            return
        elif id.startswith("engine"):
            trial.execute("fail_engine()")
        elif id.startswith("crash_once"):
            mark = Path("crashed")
            if not mark.exists():
                mark.touch()
                trial.execute("1")
                os.kill(os.getpid(), signal.SIGKILL)
            trial.submit(42)
        elif id.startswith("crash"):
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            trial.execute("print('half', 'way')")
            trial.execute("print('do', 'ne', sep='')")
            trial.submit(42)
"""


# By which a program acts in its trial and asks the model, in a process of its own.
CLIENT = """
import json, os, sys, threading, time, urllib.error, urllib.request

def send(url, body=None):
    key = os.environ.get("SUPER_TRIAL_TOKEN", "sk-of-the-program")
    request = urllib.request.Request(url, body, {"Authorization": "Bearer " + key})
    try:
        with urllib.request.urlopen(request) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        return json.load(error)

def act(name, **fields):
    return send(os.environ["SUPER_TRIAL_URL"] + "/" + name, json.dumps(fields).encode())

def ask_with(body):
    return send(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)

def ask(text, **fields):
    body = {"model": "any", "messages": [{"role": "user", "content": text}], **fields}
    answer = ask_with(json.dumps(body).encode())
    return answer["choices"][0]["message"]["content"] if "choices" in answer else answer["error"]["code"]
"""
SCRIPT = "--super-model=scripted:script.yaml"


def asked_in(trial: Path) -> list[dict[str, Any]]:
    """The requests that a trial put to its model, by its folder."""
    answers = read_answers(trial / FILE)
    return [answers.asked(number) for number in answers.calls]


class Folder(TaskFolder):
    """A folder in which pytest runs, with these settings and Python files."""

    def __init__(self, pytester: pytest.Pytester, settings: str = "", **files: str) -> None:
        super().__init__(pytester.path)
        self.pytester = pytester
        pytester.makeini(f"[pytest]\npythonpath = .\n{settings}")
        for name, text in files.items():
            self.write(f"{name}.py", text)


class Project(Folder):
    """A folder in which an agent runs. Unless files say otherwise, its kernels are fake."""

    def __init__(self, pytester: pytest.Pytester, settings: str = "", **files: str) -> None:
        super().__init__(pytester, settings, **{"conftest": FAKE_KERNELS, "agent": AGENT, **files})

    def run(self, *arguments: str, agent: str = "agent:Agent", **named: Any) -> pytest.RunResult:
        return self.pytester.runpytest(f"--super-agent={agent}", "--super-sandbox=local", *arguments, **named)

    def run_in_subprocess(self, *arguments: str, agent: str = "agent:Agent") -> pytest.RunResult:
        """Where a test changes what a process reads once: its path, its temporary folder, its packages."""
        return self.pytester.runpytest_subprocess(
            f"--super-agent={agent}", "--super-sandbox=local", *arguments
        )

    def add_to_conftest(self, text: str) -> None:
        conftest = self.path / "conftest.py"
        conftest.write_text(f"{conftest.read_text()}\n\n{text}")

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """The lines of results.jsonl, by name of the trial; the last run of each."""
        rows = sorted(self.rows, key=lambda row: row["rerun"])
        return {f"{row['id']}[{row['epoch']}]": row for row in rows}


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    return Project(pytester)


@pytest.fixture(scope="session")
def paid(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """A project with a stored run. Tests copy it."""
    # Not at the top, because it imports scipy.
    from tests.integration.stored_runs import Stored

    return Stored.make(tmp_path_factory.mktemp("paid"))


@pytest.fixture
def isolation_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs in this process find out anew what isolates here, and keep nothing of it."""
    monkeypatch.setattr(engine, "connect", cache(engine.connect.__wrapped__))
    for name in ("way", "refusal", "why_unusable", "why_not_isolated"):
        anew = cache(getattr(bwrap, name).__wrapped__)
        for module in (bwrap, bubblewrap):
            monkeypatch.setattr(module, name, anew, raising=module is bwrap)


@pytest.fixture
def no_isolation(isolation_anew: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """A machine without a container engine and without bubblewrap."""
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent")
    monkeypatch.setenv("PATH", "/nonexistent")


@pytest.fixture
def own_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The temporary files of runs in this process and of their programs are in the test's folder."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


class ProgramProject(Folder):
    """A folder with tasks, and programs that are the agents of its runs."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        super().__init__(pytester, client=CLIENT)

    def add_program(self, name: str, source: str) -> None:
        self.write(f"{name}.py", source)

    def script(self, *answers: Any) -> None:
        self.write("script.yaml", json.dumps(list(answers)))

    def add_task(self, id: str = "a", file: str = "", **fields: Any) -> None:
        super().add_task(id, file, **{"query": "What is it? 'Tell' \"me\"", **fields})

    def run(self, command: str, *arguments: str) -> dict[str, Any]:
        """Run all tasks with the command as the agent; the result of the last."""
        raise NotImplementedError

    def run_queries(self, queries: Mapping[str, str], command: str) -> None:
        """Run a task for each query, which the command runs as a shell script and which submits nothing."""
        for id, query in queries.items():
            self.add_task(id, query=query)
        self.run(command)
        for result in self.results:
            assert (result["stop_reason"], result["submitted"], result["error"]) == ("returned", False, None)

    @property
    def results(self) -> list[dict[str, Any]]:
        return read_lines(self.latest / "results.jsonl")

    def steps(self, id: str = "a") -> list[dict[str, Any]]:
        """Those that did something, and not those that a program's calls of its model tell of."""
        told = ("tool_call", "message")
        return [step for step in self.all_steps(id) if step["action"]["type"] not in told]

    def all_steps(self, id: str = "a") -> list[dict[str, Any]]:
        (path,) = self.latest.glob(f"trials/{id}/*/trajectory.jsonl")
        return read_lines(path)
