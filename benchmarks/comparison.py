"""The summary of a large stored run, and its comparison with another one: time and memory.

Usage: python benchmarks/comparison.py [--small]

The runs are those of `page.py`, without trajectories. The work is timed in a fresh process, next to
`json.loads` of the lines that it reads.
"""

from __future__ import annotations

import argparse
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
    "from pytest_super.comparison.comparison import compare\n"
    "from pytest_super.comparison.side import side_of_run\n"
    "from pytest_super.report.comparison import comparison_lines",
    "assert list(comparison_lines(compare(*(side_of_run(Path(one)) for one in sys.argv[1:3]), 0.1)))",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="100 trials")
    trials = 100 if parser.parse_args().small else MANY_TRIALS
    with tempfile.TemporaryDirectory() as name:
        runs = [stored_run(Path(name) / one, trials, 0) for one in ("before", "after")]
        bare, _ = measured(BARE, runs[0], "results.jsonl")
        for what, work, read in (
            (f"the summary of {trials:,} stored trials", SUMMARY, 1),
            (f"the comparison of two runs of {trials:,} stored trials each", COMPARISON, 2),
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
