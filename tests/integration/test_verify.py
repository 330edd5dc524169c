"""`pytest-super verify` as a person types it: gold is run by pytest, and what it finds is told."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.integration.conftest import Project, read_lines
from tests.waiting import until

# Its value is another one in each epoch.
COUNT = """
from pathlib import Path
with Path("count").open("a") as file:
    file.write("x")
0.5 + len(Path("count").read_text()) / 1000
"""
WHY = "the answer is 41, not 42"
COMMAND = "import sys; from pytest_super.cli import main; sys.exit(main())"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", COMMAND, "verify", "tasks", *arguments]


def verify(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), cwd=project.path, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_all_that_is_wrong_with_tasks_is_told(project: Project) -> None:
    project.add_task("right", solution={"cells": ["print('do' + 'ne')", "42"]}, landmarks=["done"])
    project.add_task("wrong", solution={"cells": ["41"]})
    project.add_task("counts", answer=0.5, solution={"cells": [COUNT]})
    project.add_task(
        "told",
        set="masked",
        category="data",
        answer={"f1": 0.8127},
        pre_execute=["print('f1', 0.81266)"],
        solution={"cells": ["{'f1': 0.8127}"]},
    )
    done = verify(project, "--sandbox=local", "--epochs=2", "--json=found.json")
    assert done.returncode == 1
    assert [
        line for line in done.stdout.splitlines() if line.split()[0:1] in (["fails"], ["flaky"], ["leaks"])
    ] == [
        "flaky   counts: the answer is 0.501..0.502 over 2 epochs, within the tolerance 0.01",
        "leaks   told: f1 (0.8127) of the answer: the pre-executed step 1, line 1, `0.81266`",
        "leaks   told: f1 (0.8127) of the answer: the output of the pre-executed step 1, line 1, `0.81266`",
        *(
            f"fails   {name}: accuracy 0; wrong value; trials/wrong/{epoch}.0/trajectory.jsonl; {WHY}"
            for name, epoch in (("wrong", 1), ("wrong[2]", 2))
        ),
    ]
    assert "4 tasks, 8 trials in 2 epochs: 1 fails, 1 flaky, 1 leaks" in done.stdout
    data = json.loads((project.path / "found.json").read_text())
    assert [(finding["kind"], finding["task"]) for finding in data["findings"]] == [
        ("flaky", "counts"),
        ("leaks", "told"),
        ("leaks", "told"),
        ("fails", "wrong"),
        ("fails", "wrong"),
    ]


@pytest.mark.slow
def test_tasks_that_hold_leave_the_status_0_and_their_run_can_be_judged_again(project: Project) -> None:
    project.add_task("right", solution={"cells": ["42"]})
    project.add_task("other", solution={"cells": ["42"]})
    done = verify(project, "--sandbox=local", "--epochs=2", "-n2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 tasks, 4 trials in 2 epochs: nothing was found" in done.stdout
    run = done.stdout.splitlines()[-1].removeprefix("results: ")
    assert (project.path / run / "results.jsonl").exists()
    again = verify(project, f"--run={run}")
    assert again.returncode == 0
    found, where = again.stdout.splitlines()
    assert found == done.stdout.splitlines()[-2]
    assert where == f"results: {(project.path / run).resolve()}"


@pytest.mark.slow
def test_a_run_that_did_not_come_to_its_end_is_not_judged(project: Project) -> None:
    project.add_task("right", solution={"cells": ["42"]})
    done = verify(project, "--sandbox=local", "--epochs=0")
    assert done.returncode == 1
    assert "pytest ended with status 4 before all tasks were run" in done.stderr


def test_errors_of_task_files_are_told_before_anything_runs(project: Project) -> None:
    project.add_task("right", answer=None)
    done = verify(project)
    assert (done.returncode, done.stdout) == (1, "")
    assert "right.task.yaml:1:1: `answer` is missing" in done.stderr


HANG = "import time\nfrom pathlib import Path\nPath('hangs').touch()\ntime.sleep(600)"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_run_ends_with_the_command(project: Project, number: signal.Signals) -> None:
    project.add_task("hangs", solution={"cells": [HANG]})
    with subprocess.Popen(
        command("--sandbox=local"),
        cwd=project.path,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        until((project.path / "hangs").exists)
        if number == signal.SIGINT:
            # As a terminal sends it: to all of the group.
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        # Ended by all that hold them: pytest too.
        _, told = process.communicate(timeout=60)
    (row,) = read_lines(project.path / ".super/verify/runs/latest/results.jsonl")
    assert row["stop_reason"] == "interrupted"
    assert ("pytest ended with status 2 before all tasks were run" in told) == (number == signal.SIGINT)
