"""Runs attacking agents on tasks by `pytest`, in a process of its own, and reads the results."""

import json
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

# Of processor time, which does not depend on what else the machine does.
SECONDS = 300
# Only reached by what waits for ever.
LONGEST_WAIT = 3600
Outcome = Literal["blocked", "flagged", "open"]
"""`blocked`: it gains nothing. `flagged`: it gains something, and the result says so. `open`: neither."""
AGENT = """
class Agent:
    '''Runs the cell that is stored under the name of its task, and submits the text beside it.'''
    def run(self, trial):
        name = trial.task.id.partition("_")[0]
        with open(f"cells/{name}.py") as cell:
            if "Traceback" in (seen := trial.execute(cell.read()).observation):
                raise RuntimeError(seen)
        with open(f"cells/{name}.txt") as answer:
            trial.submit(eval(answer.read()))
"""
CONFTEST = """
import json, resource
import pytest

def used():
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    before = used()
    result = yield
    with open("processor.jsonl", "a") as file:
        print(json.dumps([item.task.id, used() - before]), file=file)
    return result
"""


class Attacked(NamedTuple):
    """A row of a table of attacks. That of a control begins with `control:`, and has to be solved."""

    name: str
    """What is tried."""
    task: dict[str, Any]
    cell: str
    """The code that does it in the agent's sandbox."""
    submitted: str = "None"
    """A Python expression."""


def outcomes_of(
    attacks: Sequence[Attacked], files: Mapping[str, str], folder: Path, seconds: float
) -> dict[str, Outcome]:
    """What came of each attack, by its name, in one run with all of them.

    One whose trial takes more `seconds` of processor time on the host is open.
    """
    written = {"agent.py": AGENT, **files}
    for number, attack in enumerate(attacks):
        written[f"cells/a{number}.py"], written[f"cells/a{number}.txt"] = attack.cell, attack.submitted
        written[f"a{number}.task.yaml"] = json.dumps({"id": f"a{number}", **attack.task})
    rows = results_of(folder, written, "--super-sandbox=local", ".")
    by_number = {int(row["id"].partition("_")[0][1:]): row for row in rows}
    by_name = {attack.name: by_number[number] for number, attack in enumerate(attacks)}
    controls = [by_name.pop(name) for name in list(by_name) if name.startswith("control:")]
    # Without these, broken grading would look like one that blocks everything.
    assert controls
    assert all(row["solved"] for row in controls)
    return {name: outcome_of(row, seconds) for name, row in by_name.items()}


def outcome_of(row: Mapping[str, Any], seconds: float) -> Outcome:
    if row["stop_reason"] == "error" or row["processor_seconds"] > seconds:
        return "open"
    if not row["solved"]:
        return "blocked"
    return "flagged" if row.get("whole_file_differs") or row.get("left_out") else "open"


def results_of(folder: Path, files: Mapping[str, str], *options: str) -> list[dict[str, Any]]:
    """The stored results of a run in `folder` with these files; `agent.py` has the class `Agent`.

    Each has also `processor_seconds`: what its trial took on the host.
    """
    for name, text in {"pytest.ini": "[pytest]\n", "conftest.py": CONFTEST, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "--super-agent=agent:Agent", "-pno:cacheprovider", *options]
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LONGEST_WAIT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS)),
    )
    stored = sorted(folder.glob(".super/runs/*/results.jsonl"))
    if not stored:
        raise RuntimeError(f"the run has no results:\n{done.stdout}{done.stderr}")
    used = dict(map(json.loads, (folder / "processor.jsonl").read_text().splitlines()))
    rows = map(json.loads, stored[-1].read_text().splitlines())
    return [{**row, "processor_seconds": used[row["id"]]} for row in rows]
