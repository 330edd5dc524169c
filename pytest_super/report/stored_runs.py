"""The list of stored runs as text."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from pytest_super.report.table import WIDTH, table_lines
from pytest_super.report.terminal import figure
from pytest_super.words import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_super.store.stored_runs import StoredRun

HEADS = ("run", "agent", "model", "trials", "solved", "headline", "errors", "cost", "verdict")


def run_lines(runs: Iterable[StoredRun]) -> Iterator[str]:
    rows = [row_of(run) for run in runs]
    if not rows:
        yield "there are no stored runs"
        return
    width = max(WIDTH, shutil.get_terminal_size().columns)
    for line in table_lines([HEADS, *rows], texts=3, width=width):
        yield one_line(line)


def row_of(run: StoredRun) -> list[str]:
    return [
        run.id,
        run.agent,
        run.model or "-",
        str(run.trials),
        figure(run.solved),
        figure(run.headline),
        str(run.errors),
        "-" if run.cost_usd is None else f"${run.cost_usd:.2f}",
        run.verdict or "-",
    ]
