"""How long 16 workers take for trials as long as those of the shipped tasks, over the lower bound.

Usage: python benchmarks/makespan.py [--small]

The agent sleeps as long as the gold solution of the task took in a local kernel (`durations.json`). The run
is a real one of pytest-xdist. Its second run knows from the first how long each task takes. The time is that
from the start of the first trial to the end of the last one. No order can be faster than the longest trial,
or than all trials divided by the workers.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from datetime import datetime
from pathlib import Path
from sys import executable

from process_tree import ONLY_REQUIRED_PLUGINS, measure
from rows import print_row

from pytest_super.store.results import read_results
from pytest_super.tasks.loading import load_tasks

HERE = Path(__file__).parent
DURATIONS: dict[str, dict[str, float]] = json.loads((HERE / "durations.json").read_text())
CONFTEST = """
import json, pathlib, time
import pytest
from pytest_super.testing import FakeKernel

SECONDS = json.loads(pathlib.Path(__file__).with_name("seconds.json").read_text())

class Sleeper:
    def run(self, trial):
        time.sleep(SECONDS[trial.task.id])
        trial.submit(1)

@pytest.fixture
def super_make_kernel():
    return FakeKernel

def pytest_super_make_agent():
    return Sleeper()
"""


def write_project(folder: Path, scale: float, files: int) -> dict[str, float]:
    """Tasks with the files, ids and limits of the shipped ones. Returns the seconds of each."""
    seconds = {}
    (folder / "tasks").mkdir()
    for name, durations in list(DURATIONS.items())[:files]:
        limits = {"compute": load_tasks(HERE.parent / "tasks" / name)[0].limits.compute}
        tasks = [
            {"id": id, "set": "expert", "query": "sleep", "answer": 1, "limits": limits} for id in durations
        ]
        (folder / "tasks" / name).write_text("\n---\n".join(map(json.dumps, tasks)))
        seconds.update({id: scale * duration for id, duration in durations.items()})
    (folder / "seconds.json").write_text(json.dumps(seconds))
    (folder / "conftest.py").write_text(CONFTEST)
    return seconds


def makespan(folder: Path, workers: int) -> float:
    options = ["--super-agent=sleeper", "--super-sandbox=local", f"-n{workers}", "-q"]
    measure([executable, "-m", "pytest", *options], folder=folder, environment=ONLY_REQUIRED_PLUGINS)
    results = read_results(folder / ".super/runs/latest")
    began = [datetime.fromisoformat(one.started).timestamp() for one in results]
    return max(a + one.wall_seconds for a, one in zip(began, results, strict=True)) - min(began)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="2 workers, 14 tasks of tenths of a second")
    given = parser.parse_args()
    workers, scale, files = (2, 0.01, 12) if given.small else (16, 1.0, len(DURATIONS))
    with tempfile.TemporaryDirectory() as name:
        seconds = write_project(Path(name), scale, files)
        bound = max(*seconds.values(), sum(seconds.values()) / workers)
        for order, wanted in (("ordered by their limits", ""), ("ordered by the run before", "1.05")):
            taken = makespan(Path(name), workers)
            print_row(
                f"{len(seconds)} trials as long as those of the shipped tasks, {order}, {workers} workers / "
                "the lower bound (`makespan.py`)",
                f"{taken:.1f} s",
                peer=f"{bound:.1f} s",
                ratio=taken / bound,
                wanted=wanted,
            )


if __name__ == "__main__":
    main()
