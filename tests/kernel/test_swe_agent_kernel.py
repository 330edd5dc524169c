"""The agent `swe-agent` in a real kernel, its model scripted."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from pytest_super.agents.swe.agent import SweAgent
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import started
from pytest_super.kernel.providers.local import LocalSandbox
from pytest_super.metrics.matching.landmark_matcher import LandmarkMatcher
from pytest_super.store.trajectory import Step
from pytest_super.tasks.public_task import public_part
from pytest_super.tasks.task import Limits, Task
from pytest_super.testing import FakeModel
from pytest_super.trial.agent_run import run_agent
from pytest_super.trial.budget import Budget
from pytest_super.trial.trial import Trial
from tests.kernel.conftest import FORKS

SCRIPT = """%%writefile repo/src/train.py
import sys

def train(epochs):
    return [0.5 / (epoch + 1) for epoch in range(epochs)]

print(train(int(sys.argv[1])))
"""


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    with started(LocalSandbox(run=FORKS)) as kernel:
        yield kernel


class Run:
    """What came of a trial in which the model gave these commands."""

    def __init__(self, kernel: Kernel, *commands: str, **limits: Any) -> None:
        self.model = FakeModel(*(f"DISCUSSION\nso\n```\n{command}\n```" for command in commands))
        budget = Budget(Limits(**limits), tokens=10**9, clock=time.monotonic)
        budget.start_metering(lambda: kernel.busy_seconds)
        task = Task.model_validate({"id": "t", "set": "expert", "query": "Do it.", "answer": 42})
        self.trial = Trial(
            public_part(task),
            kernel=kernel,
            budget=budget,
            landmarks=LandmarkMatcher(("trained",)),
            record=lambda _: None,
            model=self.model,
        )
        self.reason = run_agent(SweAgent(), self.trial, lambda _: False)

    @property
    def steps(self) -> list[Step]:
        return self.trial.history

    def prompt_line(self, request: int) -> list[str]:
        """The open file and the directory, as the model was told with that request."""
        return [
            line.partition(": ")[2][:-1]
            for line in str(self.model.requests[request][-1]["content"]).split("\n")[-3:-1]
        ]


def test_a_repository_is_read_changed_and_run(kernel: Kernel) -> None:
    run = Run(
        kernel,
        "%mkdir -p repo/src",
        SCRIPT,
        "%cd repo",
        "find_file train.py",
        'search_dir "def train"',
        "open src/train.py",
        "edit 4:4\n    return [1 / (epoch + 1) for epoch in range(epochs)\nend_of_edit",
        "edit 4:4\n    return [1 / (epoch + 1) for epoch in range(epochs)]\nend_of_edit",
        "%cd src",
        "!python train.py 2",
        'submit {"losses": [1.0, 0.5]}',
    )
    root = kernel.workdir
    assert (run.reason, run.trial.submission) == ("submitted", {"losses": [1.0, 0.5]})
    assert [step.outcome for step in run.steps] == ["ok"] * 6 + ["error"] + ["ok"] * 4
    assert f"{root}/repo/src/train.py" in run.steps[3].observation
    assert "Found 1 matches" in run.steps[4].observation
    assert "3:def train(epochs):" in run.steps[5].observation
    assert "'[' was never closed (line 4" in run.steps[6].observation
    assert run.steps[9].observation == "[1.0, 0.5]\n"
    assert run.prompt_line(0) == ["n/a", root]
    assert run.prompt_line(3) == ["n/a", f"{root}/repo"]
    assert run.prompt_line(10) == [f"{root}/repo/src/train.py", f"{root}/repo/src"]


def test_a_kernel_that_died_is_told_and_its_files_stay_open(kernel: Kernel) -> None:
    run = Run(
        kernel,
        "%mkdir sub\n%cd -q sub",
        "create a.py",
        "import os; os._exit(3)",
        "edit 1:1\nx = 1\nend_of_edit",
        "submit null",
    )
    assert [step.outcome for step in run.steps] == ["ok", "ok", "kernel_died", "ok", "ok"]
    assert run.prompt_line(3) == [f"{kernel.workdir}/sub/a.py", kernel.workdir]
    assert kernel.files.read("sub/a.py") == b"x = 1\n"


def test_a_cell_that_exits_pays_for_the_kernel_unless_it_keeps_it(kernel: Kernel) -> None:
    code = "import time\ntime.sleep(1.2)\nexit()"
    keeping = ("x = 1\nexit(keep_kernel=True)", "x")
    run = Run(kernel, "create kept.py", code, "print('new')", "open kept.py", *keeping, "submit null")
    assert [step.outcome for step in run.steps] == ["ok", "kernel_died", *["ok"] * 5]
    assert run.steps[1].observation == (
        "[The kernel died: the cell ended it; a new one is started, variables are lost, files are kept.]"
    )


def test_the_second_interrupt_without_effect_replaces_the_kernel(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "interrupt", partial(kernel.interrupt, 1))
    cell = (
        "import asyncio\nwhile True:\n    try:\n        await asyncio.sleep(0.1)\n"
        "    except asyncio.CancelledError:\n        pass"
    )
    run = Run(kernel, cell, "interrupt", "continue_wait", "interrupt", "print('new')", "submit null", cell=1)
    outcomes = [step.outcome for step in run.steps]
    assert outcomes == ["timed_out"] * 3 + ["kernel_died", "ok", "ok"]
    for step in run.steps[1:3]:
        assert "still running after the interrupt" in step.observation
        assert "another interrupt replaces the kernel" in step.observation
    assert "a second interrupt had no effect" in run.steps[3].observation
    assert "variables are lost, files are kept" in run.steps[3].observation


def test_a_cell_that_ends_at_the_second_interrupt_leaves_the_kernel(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "interrupt", partial(kernel.interrupt, 2))
    cell = (
        "import time\nfor seen in range(2):\n    try:\n        time.sleep(600)\n"
        "    except KeyboardInterrupt:\n        pass"
    )
    run = Run(kernel, cell, "interrupt", "interrupt", "seen", "submit null", cell=1)
    assert [step.outcome for step in run.steps] == ["timed_out", "timed_out", "interrupted", "ok", "ok"]
    assert run.steps[3].observation == "1\n"


def test_no_command_shows_a_landmark_and_what_ipython_pages_is_limited_output(kernel: Kernel) -> None:
    kernel.files.write("log.txt", b"trained\n")
    pages = ("len?", "from IPython.core.page import page\npage('x' * 10**6)")
    run = Run(kernel, "open log.txt", "search_file trained", "!cat log.txt", *pages, "submit null")
    assert [step.landmarks for step in run.steps] == [[], [], [0], [], [], []]
    assert "Return the number of items in a container" in run.steps[3].observation
    assert "950000 characters left out" in run.steps[4].observation
    assert len(run.steps[4].observation) < 60_000
