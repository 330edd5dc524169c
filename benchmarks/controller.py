"""What the controller of a large run costs: processor time and memory of each trial.

Usage: python benchmarks/controller.py [--small]

A trial is run once, and its reports are recorded. Then 64 processes on xdist's connections send these
reports for 10,000 tasks, and write the results of the trials, but run nothing (`simulated_worker.py`). The
controller is a real one. Its processor time counts from when all workers have collected until its end. The
peer is pytest-xdist without the plugin, which gets the same reports.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from process_tree import ENVIRONMENT, MIB, ONLY_REQUIRED_PLUGINS
from rows import print_row
from simulated_worker import RECORDED

HERE = Path(__file__).parent
OPTIONS = ("--super-agent=player", "--super-sandbox=local")
ANSWER = {"accuracy": 0.91, "f1": 0.88}
TASK = {
    "set": "expert",
    "category": "data",
    "query": "run it",
    "answer": ANSWER,
    "landmarks": ["training completed", "epoch \\d+"],
}
PLAYER = f"""
import json, pathlib
import pytest
from pytest_super.testing import FakeKernel

class Agent:
    def run(self, trial):
        for epoch in range(10):
            trial.execute(f"print('epoch {{epoch}}')")
        trial.submit({ANSWER})

@pytest.fixture
def super_make_kernel():
    return FakeKernel

def pytest_super_make_agent():
    return Agent()
"""
RECORD = """
@pytest.hookimpl(tryfirst=True)
def pytest_report_from_serializable(data):
    if data["$report_type"] == "TestReport":
        with open("reports.jsonl", "a") as file:
            file.write(json.dumps(data) + "\\n")
"""
SIMULATE = """
import atexit, os, sys, time
sys.path.insert(0, os.environ["SIMULATED_WORKER"])
looks = []
ended = 0

def look():
    status = pathlib.Path("/proc/self/status").read_text()
    [peak] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    looks.append([ended, time.process_time(), 1024 * int(peak)])

def pytest_xdist_getremotemodule():
    import simulated_worker
    return simulated_worker

def pytest_runtest_logstart():
    if not looks:
        look()

def pytest_runtest_logfinish():
    global ended
    ended += 1
    if ended == int(os.environ["SIMULATED_COUNT"]) // 10:
        look()

@atexit.register
def end():
    look()
    pathlib.Path(os.environ["SIMULATED_LOOKS"]).write_text(json.dumps(looks))
"""


@dataclass(frozen=True, kw_only=True)
class Costs:
    milliseconds: float
    """Of the processor, for each trial."""
    peaks: tuple[float, float]
    """The highest memory until a tenth of the trials had ended, and until the end, in MiB."""


def costs_of(looks: list[Any]) -> Costs:
    """`looks` has the number of trials, the processor seconds and the highest memory at each."""
    (_, began, _), (_, _, tenth), *_, (trials, ended, highest) = looks
    return Costs(milliseconds=1000 * (ended - began) / trials, peaks=(tenth / MIB, highest / MIB))


def record(folder: Path) -> Path:
    """Run one trial. Returns the file with the reports that its worker sent."""
    (folder / "one.task.yaml").write_text(json.dumps({"id": RECORDED, **TASK}))
    (folder / "conftest.py").write_text(PLAYER + RECORD)
    run(folder, [*OPTIONS, "-n1", "one.task.yaml"], {})
    return folder / "reports.jsonl"


def run(folder: Path, options: list[str], variables: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", *options]
    subprocess.run(
        command,
        cwd=folder,
        env=ENVIRONMENT | ONLY_REQUIRED_PLUGINS | variables,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def simulate(folder: Path, reports: Path, workers: int, trials: int, options: Sequence[str] = ()) -> Costs:
    (folder / "tasks").mkdir(exist_ok=True)
    (folder / "conftest.py").write_text(PLAYER + SIMULATE)
    looks = folder / "looks.json"
    variables = {
        "SIMULATED_WORKER": str(HERE),
        "SIMULATED_COUNT": str(trials),
        "SIMULATED_REPORTS": str(reports),
        "SIMULATED_TRIALS": f"{folder}/.super/runs/{{run}}/trials",
        "SIMULATED_LOOKS": str(looks),
    }
    run(folder, [f"-n{workers}", "tasks", *options], variables)
    return costs_of(json.loads(looks.read_text()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="100 trials on 2 workers")
    given = parser.parse_args()
    workers, trials = (2, 100) if given.small else (64, 10_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reports = record(folder)
        ours = simulate(folder, reports, workers, trials, OPTIONS)
        plain = simulate(folder, reports, workers, trials)
    print_row(
        f"{trials:,} trials on {workers} simulated workers: processor time of the controller for each / "
        "pytest-xdist alone (`controller.py`)",
        f"{ours.milliseconds:.2f} ms",
        peer=f"{plain.milliseconds:.2f} ms",
        wanted="2 ms",
    )
    print_row(
        f"its highest memory, after {trials // 10:,} trials and after all / pytest-xdist alone",
        "{:.0f} and {:.0f} MiB".format(*ours.peaks),
        peer="{:.0f} and {:.0f} MiB".format(*plain.peaks),
    )


if __name__ == "__main__":
    main()
