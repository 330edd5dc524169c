"""Simulated pull requests, judged by the gate on stored runs: how many unchanged agents does it call worse?

Usage: python benchmarks/pull_requests.py [--small]

An agent whose skill at each of 45 tasks is a number has a stored baseline of ten epochs. A pull request is a
stored run of three epochs: of the same agent, or of one that has lost tasks and is 10 or 20 points lower.
Prints how often each verdict is reached, and fails if more than 65 of 1,000 unchanged agents have regressed.

The second table is of people who run again until the verdict is the one that they want: all trials count, and
later looks are stricter. Its last columns are of runs that count alone, as without that rule, and of people
who follow the advice of a verdict that cannot tell. It fails at more than 6.5 % wrong verdicts, too.
The third table is of the chance in a baseline.
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
from statistics import fmean

from pytest_super.gate import CANNOT_TELL
from pytest_super.gate.baseline_file import read_side, write_baseline
from pytest_super.gate.comparison import compare
from pytest_super.gate.difference import PASS, REGRESSED, Verdict, by_look, difference, verdict
from pytest_super.gate.planning import schedule, standard_error
from pytest_super.gate.samples import LEVEL, Pair, sample_of
from pytest_super.gate.side import side_of_run
from pytest_super.option_types import LEAST_EPOCHS, MOST_EPOCHS, PASS_CHANCE
from pytest_super.store.results import TrialResult
from pytest_super.store.run_folder import create_run

TASKS, BASELINE_EPOCHS, EPOCHS = 45, 10, 3
MARGIN = 0.10
DROPS = (0.0, 0.10, 0.20)
MOST_FALSE_ALARMS = 0.065
# Of those who run again until the verdict is the one that they want.
WANTED: tuple[tuple[float, Verdict], ...] = ((0.0, REGRESSED), (0.05, REGRESSED), (0.05, PASS), (0.10, PASS))
MOST_RUNS = 10
# Epochs of a baseline.
LENGTHS = (3, 5, 10, 30)

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


def values_of(skills: Skills, epochs: int, chance: random.Random) -> list[list[float]]:
    return [[float(chance.random() < skill) for _ in range(epochs)] for skill in skills.values()]


def looked(baseline: list[list[float]], candidate: list[list[float]], level: float) -> Verdict:
    pairs = [
        Pair(baseline=before, candidate=after) for before, after in zip(baseline, candidate, strict=True)
    ]
    return verdict(difference(pairs), MARGIN, pass_level=level, level=level)


def level_of(look: int) -> float:
    return by_look(look)("expert", 1)


def joined(*runs: list[list[float]]) -> list[list[float]]:
    return [[value for values in task for value in values] for task in zip(*runs, strict=True)]


def runs_until(wanted: Verdict, drop: float, skills: Skills, chance: random.Random) -> tuple[int, int]:
    """After which run the verdict was the wanted one, with all trials and with those of the run alone."""
    lower, baseline = worse(skills, drop), values_of(skills, BASELINE_EPOCHS, chance)
    together: list[list[float]] = [[] for _ in skills]
    found, alone = MOST_RUNS + 1, MOST_RUNS + 1
    for number in range(MOST_RUNS, 0, -1):
        # Whose order does not matter: from the last one, so that the first verdict is kept.
        if looked(baseline, values_of(lower, EPOCHS, chance), LEVEL) == wanted:
            alone = number
    for number in range(1, MOST_RUNS + 1):
        together = joined(together, values_of(lower, EPOCHS, chance))
        if looked(baseline, together, level_of(number)) == wanted:
            found = number
            break
    return found, alone


def advised(drop: float, skills: Skills, chance: random.Random) -> Verdict:
    """The verdict of a run of three epochs, or of the adaptive ones after it that are advised."""
    lower, baseline = worse(skills, drop), values_of(skills, BASELINE_EPOCHS, chance)
    together = values_of(lower, EPOCHS, chance)
    decided = looked(baseline, together, level_of(1))
    for number in range(2, MOST_RUNS + 1):
        if decided != CANNOT_TELL:
            break
        decided, together = adaptive(baseline, together, lower, level_of(number), chance)
    return decided


def adaptive(
    baseline: list[list[float]],
    before: list[list[float]],
    skills: Skills,
    level: float,
    chance: random.Random,
) -> tuple[Verdict, list[list[float]]]:
    """An adaptive run after other trials: its verdict, and all trials."""
    plan = schedule(
        sample_of(baseline),
        least=LEAST_EPOCHS,
        most=MOST_EPOCHS,
        margin=MARGIN,
        pass_chance=PASS_CHANCE,
    )
    own = values_of(skills, max(plan.epochs), chance)
    decided: Verdict = CANNOT_TELL
    together = before
    for epoch, one in enumerate(plan.confidences(level), LEAST_EPOCHS):
        until = [values[: min(epoch, most)] for values, most in zip(own, plan.epochs, strict=True)]
        together = joined(before, until)
        decided = looked(baseline, together, one)
        if decided != CANNOT_TELL:
            break
    return decided, together


def print_rerun(skills: Skills, count: int, chance: random.Random) -> float:
    """The largest share of wrong verdicts."""
    heads = ["the agent is lower by", "runs until", "1 run", "2 runs", "4 runs", f"{MOST_RUNS} runs"]
    heads += [f"{MOST_RUNS} runs, each alone", "follows the advice"]
    print(f"\n| {' | '.join(heads)} |\n|{'---:|' * len(heads)}")
    most = 0.0
    for drop, wanted in WANTED:
        ends = [runs_until(wanted, drop, skills, chance) for _ in range(count)]
        shares = [sum(found <= runs for found, _ in ends) / count for runs in (1, 2, 4, MOST_RUNS)]
        alone = sum(alone <= MOST_RUNS for _, alone in ends) / count
        follows = sum(advised(drop, skills, chance) == wanted for _ in range(count)) / count
        told = " | ".join(f"{100 * share:.1f} %" for share in (*shares, alone, follows))
        print(f"| {100 * drop:g} points | {wanted} | {told} |", flush=True)
        # At a drop of half the margin no verdict is wrong.
        if drop in (0.0, MARGIN):
            most = max(most, *shares, follows)
    return most


def print_luck(skills: Skills, count: int, chance: random.Random) -> None:
    """What the chance in a baseline does to all pull requests that share it."""
    heads = ["baseline's epochs", "standard error", "false alarms", "of the luckiest tenth of baselines"]
    heads += ["passes 10 points", "of the unluckiest tenth"]
    print(f"\n| {' | '.join(heads)} |\n|{'---:|' * len(heads)}")
    lower = worse(skills, MARGIN)
    for epochs in LENGTHS:
        baselines = [values_of(skills, epochs, chance) for _ in range(count)]
        baselines.sort(key=lambda one: fmean(fmean(values) for values in one))
        tenth = max(count // 10, 1)
        error = fmean(standard_error(sample_of(one)) for one in baselines[:tenth])
        shares = [
            sum(looked(one, values_of(now, EPOCHS, chance), LEVEL) == wrong for one in chosen) / len(chosen)
            for now, wrong, chosen in (
                (skills, REGRESSED, baselines),
                (skills, REGRESSED, baselines[-tenth:] * 10),
                (lower, PASS, baselines),
                (lower, PASS, baselines[:tenth] * 10),
            )
        ]
        told = " | ".join(f"{100 * share:.1f} %" for share in shares)
        print(f"| {epochs} | {100 * error:.1f} points | {told} |", flush=True)


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
    wrong = print_rerun(skills, 2 * count, chance)
    print_luck(skills, 2 * count, chance)
    if count >= 1000 and max(false_alarms, wrong) > MOST_FALSE_ALARMS:
        sys.exit("too many wrong verdicts")


if __name__ == "__main__":
    main()
