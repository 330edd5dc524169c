"""The summary of a large stored run, its comparison with another one, and with the trials of an earlier one.

Usage: python benchmarks/comparison.py [--small]

The runs are those of `page.py`, without trajectories. Time and memory are those of a fresh process, next to
`json.loads` of the lines that it reads.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from page import BARE, MANY_TRIALS, MEGABYTES, SECONDS, measured, stored_run
from rows import print_row

SUMMARY = (
    "from pytest_super.metrics.registry import installed_metrics\n"
    "from pytest_super.report.terminal import summary_lines\n"
    "from pytest_super.store.results import read_results",
    "results = list(read_results(Path(sys.argv[1])))\n"
    "assert list(summary_lines(results, installed_metrics(), results))",
)
COMPARISON = (
    "from pytest_super.gate.comparison import compare\n"
    "from pytest_super.gate.side import side_of_run\n"
    "from pytest_super.report.comparison import comparison_lines",
    "assert list(comparison_lines(compare(*(side_of_run(Path(one)) for one in sys.argv[1:3]), 0.1)))",
)
GATED = (
    "from pytest_super.gate.comparison import compare\n"
    "from pytest_super.gate.earlier import earlier_runs\n"
    "from pytest_super.gate.side import side_of\n"
    "from pytest_super.store.results import read_results",
    "earlier = earlier_runs(Path(sys.argv[1]).parents[1], 'run-x', {'agent': 'a'}, 'main')\n"
    "own = read_results(Path(sys.argv[2]))\n"
    "before = earlier.like(own, 'run-x')\n"
    "assert len(before) == len(own)\n"
    "candidate = side_of('run-x', {}, [*before, *own])\n"
    "assert compare(candidate, candidate, 0.1)",
)


def add_facts(run: Path) -> None:
    """Those by which a later run finds the run."""
    path = run / "run.json"
    facts = {**json.loads(path.read_text()), "subject": {"agent": "a"}, "baseline": "main"}
    path.write_text(json.dumps(facts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="100 trials")
    trials = 100 if parser.parse_args().small else MANY_TRIALS
    with tempfile.TemporaryDirectory() as name:
        runs = [stored_run(Path(name) / one, trials, 0) for one in ("before", "after")]
        add_facts(runs[0])
        bare, _ = measured(BARE, runs[0], "results.jsonl")
        for what, work, read in (
            (f"the summary of {trials:,} stored trials", SUMMARY, 1),
            (f"the comparison of two runs of {trials:,} stored trials each", COMPARISON, 2),
            (f"that of a run of {trials:,} trials with as many earlier ones", GATED, 2),
        ):
            seconds, megabytes = measured(work, *runs)
            print_row(
                f"{what} / `json.loads` of their lines (`comparison.py`)",
                f"{seconds:.2f} s, {megabytes:.0f} MB",
                peer=f"{read * bare:.2f} s",
                ratio=seconds / (read * bare),
                wanted=f"{SECONDS}, {MEGABYTES}",
            )


if __name__ == "__main__":
    main()
