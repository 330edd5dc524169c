"""Simulated pull requests, judged by the gate on stored runs: how many unchanged agents does it call worse?

Usage: python benchmarks/pull_requests.py [--small]

An agent whose skill at each of 45 tasks is a number has a stored baseline of ten epochs. A pull request is a
stored run of three epochs: of the same agent, or of one that has lost tasks and is 10 or 20 points lower.
Prints how often each verdict is reached, and fails if more than 65 of 1,000 unchanged agents have regressed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from pytest_super.comparison.baseline import read_side, write_baseline
from pytest_super.comparison.comparison import compare
from pytest_super.comparison.side import side_of_run
from pytest_super.store.results import TrialResult
from pytest_super.store.run_folder import create_run

TASKS, BASELINE_EPOCHS, EPOCHS = 45, 10, 3
MARGIN = 0.10
DROPS = (0.0, 0.10, 0.20)
MOST_FALSE_ALARMS = 0.065

Skills = dict[str, float]


def stored_run(folder: Path, name: str, skills: Skills, epochs: int, chance: random.Random) -> Path:
    """A run as a session stores it, without the files of its trials."""
    run = create_run(folder, {"id": name, "agent": "skilled", "subject": {"agent": "skilled"}}, name)
    lines = []
    for id, skill in skills.items():
        for epoch in range(1, epochs + 1):
            solved = chance.random() < skill
            result = TrialResult(
                id=id,
                set="expert",
                category=None,
                epoch=epoch,
                rerun=0,
                agent="skilled",
                conditions="c",
                scoring="s",
                headline="accuracy",
                metrics={"accuracy": float(solved)},
                solved=solved,
                stop_reason="submitted",
            )
            lines.append(json.dumps(result.to_data()))
    (run.path / "results.jsonl").write_text("\n".join([*lines, ""]))
    return run.path


def worse(skills: Skills, drop: float) -> Skills:
    """The agent without some of the tasks that it is good at, and with a lower skill at one more."""
    left = drop * len(skills)
    lower = dict(skills)
    for id in sorted(skills, key=lambda id: -skills[id]):
        lost = min(left, lower[id])
        lower[id] -= lost
        left -= lost
    return lower


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="50 pull requests of each kind")
    count = 50 if parser.parse_args().small else 1000
    chance = random.Random(45)
    skills = {f"task-{number:02}": chance.betavariate(0.45, 0.55) for number in range(TASKS)}
    print("| the agent is lower by | pass | cannot tell | regressed |\n|---:|---:|---:|---:|")
    false_alarms = 0.0
    began = time.perf_counter()
    for drop in DROPS:
        verdicts: Counter[str] = Counter()
        for number in range(count):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                # A baseline of its own for each, because a lucky one would skew all.
                before = stored_run(folder, "main", skills, BASELINE_EPOCHS, chance)
                write_baseline(folder / "baseline.json", side_of_run(before))
                after = stored_run(folder, f"pull-{number}", worse(skills, drop), EPOCHS, chance)
                verdicts[compare(read_side(folder / "baseline.json"), read_side(after), MARGIN).verdict] += 1
        shares = [verdicts[one] / count for one in ("pass", "cannot tell", "regressed")]
        print(f"| {100 * drop:g} points | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |")
        false_alarms = shares[-1] if not drop else false_alarms
    took = (time.perf_counter() - began) / (count * len(DROPS))
    print(f"\n{count} pull requests each, {1000 * took:.0f} ms for one with its baseline")
    if count >= 1000 and false_alarms > MOST_FALSE_ALARMS:
        sys.exit("too many false alarms")


if __name__ == "__main__":
    main()
