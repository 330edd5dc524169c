"""The page of a run: how long it takes to make, how much memory, and how long a browser takes to open it.

Usage: python benchmarks/page.py [--small]

Runs are stored as sessions store them: 152 trials whose cells printed a megabyte each, and 10,000 trials
without trajectories. Making a page is timed in a fresh process, next to `json.loads` of the lines that it
reads. Opening is timed with the extra `browser` and a `chromium`, from the request until the second frame.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rows import print_row

from pytest_super.report.page.server import PageServer
from pytest_super.store.results import TrialResult
from pytest_super.store.run_folder import create_run
from pytest_super.store.trajectory import Action, Step
from pytest_super.store.trial_folder import TrialFolder

LONG_TRIALS, STEPS, CHARACTERS = 152, 10, 100_000
MANY_TRIALS = 10_000
SECONDS, MEGABYTES = "2 s", "200 MB"
# In a process of its own: prints the seconds of the work, and the process's largest memory in MB.
MEASURED = """
import json, sys, time
from pathlib import Path
{imports}
began = time.perf_counter()
{work}
seconds = time.perf_counter() - began
[peak] = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(seconds, int(peak) / 1000)
"""
FILE = (
    "from pytest_super.report.page.render import write_page",
    "write_page(Path(sys.argv[2]), Path(sys.argv[1]))",
)
SERVED = (
    "from pytest_super.report.page.server import Pages",
    "Path(sys.argv[2]).write_text(Pages([Path(sys.argv[1])]).page('/')[1]())",
)
BARE = (
    "",
    "for path in Path(sys.argv[1]).rglob(sys.argv[2]):\n"
    "    for line in path.read_text().splitlines():\n        json.loads(line)",
)


def result_of(number: int, chance: random.Random) -> TrialResult:
    solved = chance.random() < 0.4
    landmark = {"pattern": "epoch 9 done", "step": 2, "is_echo": False, "timed_out": False}
    return TrialResult(
        id=f"task-{number:05}",
        set="masked",
        category=chance.choice(("data", "goal", "dependencies", "configuration")),
        epoch=1,
        rerun=0,
        agent="mine.agents:Agent",
        model="openai/some-model",
        sandbox="docker",
        headline="accuracy",
        metrics={"accuracy": float(solved), "landmarks": 0.5, "submitted": 1.0},
        applicable=["accuracy", "landmarks", "submitted"],
        landmarks_found=[landmark, {**landmark, "step": None}],
        difference="" if solved else "accuracy is 0.5312, not 0.9123",
        submitted=True,
        solved=solved,
        stop_reason="submitted",
        compute_seconds=round(chance.lognormvariate(3, 1), 1),
        wall_seconds=round(chance.lognormvariate(4, 1), 1),
        prompt_tokens=chance.randrange(500_000),
        cost_usd=round(chance.lognormvariate(-1, 1), 4),
        steps=chance.randrange(5, 60),
        started=f"2026-11-23T{number % 24:02}:{number % 60:02}:00.000+00:00",
        worker=f"gw{number % 16}",
    )


def stored_run(folder: Path, trials: int, steps: int) -> Path:
    """A run whose trials have `steps` steps, each with a long output; without folders if there are none."""
    chance = random.Random(trials)
    run = create_run(folder, {"id": "run", "agent": "mine.agents:Agent"}, f"run-{trials}")
    text = "".join(f"epoch {n} done, <loss> 0.{n:06}\n" for n in range(CHARACTERS // 30))
    lines = []
    for number in range(trials):
        result = result_of(number, chance)
        if steps:
            trial = TrialFolder(run.path, result)
            for step in range(1, steps + 1):
                action = Action(type="execute", content="!python train.py")
                trial.write_step(Step(number=step, origin="agent", action=action, observation=text))
            trial.write_result(trial.start)
            trial.close()
        lines.append(json.dumps(result.to_data()) + "\n")
    (run.path / "results.jsonl").write_text("".join(lines))
    return run.path


def measured(work: tuple[str, str], *arguments: Path | str) -> tuple[float, float]:
    """Seconds and megabytes: the fastest of three processes, and the largest memory of any."""
    code = MEASURED.format(imports=work[0], work=work[1])
    found = []
    for _ in range(3):
        command = [sys.executable, "-c", code, *map(str, arguments)]
        seconds, megabytes = subprocess.run(
            command, capture_output=True, check=True, text=True
        ).stdout.split()
        found.append((float(seconds), float(megabytes)))
    return min(seconds for seconds, _ in found), max(megabytes for _, megabytes in found)


def opened(url: str) -> float | None:
    """Seconds until a browser shows the page: the median of three; None without a browser."""
    program = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if program is None:
        return None
    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        for _ in range(3):
            page = browser.new_page()
            began = time.perf_counter()
            page.goto(url)
            page.evaluate(
                "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))"
            )
            found.append(time.perf_counter() - began)
            page.close()
        browser.close()
    return sorted(found)[1]


@contextmanager
def served(run: Path) -> Iterator[str]:
    with PageServer([run]) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.url
        server.shutdown()


def print_opening(what: str, url: str) -> None:
    seconds = opened(url)
    if seconds is not None:
        print_row(f"{what} is open in Chromium (`page.py`)", f"{seconds:.2f} s", wanted=SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="8 and 100 trials")
    is_small = parser.parse_args().small
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        long = stored_run(folder, 8 if is_small else LONG_TRIALS, STEPS)
        many = stored_run(folder, 100 if is_small else MANY_TRIALS, 0)
        for run, pattern, what in (
            (long, "trajectory.jsonl", f"trials with {STEPS * CHARACTERS / 1e6:g} MB of output"),
            (many, "results.jsonl", "stored trials"),
        ):
            count = int(run.name.rpartition("-")[2])
            page = folder / f"{run.name}.html"
            bare, _ = measured(BARE, run, pattern)
            seconds, megabytes = measured(FILE, run, page)
            size = page.stat().st_size / 1e6
            print_row(
                f"one file of {count:,} {what}, of {size:.1f} MB / `json.loads` of their lines (`page.py`)",
                f"{seconds:.2f} s, {megabytes:.0f} MB",
                peer=f"{bare:.2f} s",
                ratio=seconds / bare,
                wanted=f"{SECONDS}, {MEGABYTES}",
            )
            print_opening(f"that of {count:,} {what}", page.as_uri())
            seconds, megabytes = measured(SERVED, run, folder / "served.html")
            print_row(
                f"the first page that `view` sends of {count:,} {what} (`page.py`)",
                f"{seconds:.2f} s, {megabytes:.0f} MB",
                wanted=f"{SECONDS}, {MEGABYTES}",
            )
            with served(run) as url:
                print_opening(f"`view` of {count:,} {what}", url)
                if run == long:
                    print_opening("one of these trials", f"{url}0/trials/task-00000/1.0")


if __name__ == "__main__":
    main()
