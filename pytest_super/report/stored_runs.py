"""The list of stored runs as text."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pytest_super.gate.figures import without_interrupted
from pytest_super.metrics.means import mean_over_tasks
from pytest_super.report.summary import Group
from pytest_super.report.table import WIDTH, table_lines
from pytest_super.report.terminal import figure
from pytest_super.store.json_lines import UNREADABLE, read_json
from pytest_super.store.run_folder import last_reruns, stored_results
from pytest_super.store.stored_runs import run_folders
from pytest_super.store.verdict import read_word
from pytest_super.words import one_line

HEADS = ("run", "agent", "model", "trials", "solved", "headline", "errors", "cost", "verdict")


def run_lines(directory: Path) -> Iterator[str]:
    """The newest first. Runs that cannot be read are left out: they have no results yet, or are damaged."""
    rows = []
    for folder in run_folders(directory):
        with suppress(*UNREADABLE):
            rows.append(row_of(folder))
    if not rows:
        yield "there are no stored runs"
        return
    width = max(WIDTH, shutil.get_terminal_size().columns)
    for line in table_lines([HEADS, *rows], texts=3, width=width):
        yield one_line(line)


def row_of(folder: Path) -> list[str]:
    """Raises one of UNREADABLE."""
    facts = read_json(folder / "run.json")
    group = Group(results=without_interrupted(last_reruns(stored_results(folder))))
    costs = [one.cost_usd for one in group.results if one.cost_usd is not None]
    return [
        folder.name,
        str(facts["agent"]),
        str(facts["model"] or "-"),
        str(group.trials),
        figure(mean_over_tasks((one, float(one.solved)) for one in group.valid)),
        figure(mean_over_tasks((one, one.headline_value) for one in group.valid)),
        str(group.errors),
        f"${sum(costs):.2f}" if costs else "-",
        read_word(folder) or "-",
    ]
