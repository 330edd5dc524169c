"""A run as a table in CSV with one row for each trial."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_super.report.summary import metric_names
from pytest_super.store.results import stored_fields

if TYPE_CHECKING:
    from pytest_super.report.export.trials import StoredTrials

RUN, METRIC = "run", "metric_"


def columns_of(trials: StoredTrials) -> list[str]:
    """The names of the columns: the same for all runs, but for the metrics."""
    fields = [one.name for one in stored_fields() if one.kind not in (list, dict)]
    return [RUN, *fields, *(f"{METRIC}{name}" for name in metric_names(trials.results))]


def rows_of(trials: StoredTrials) -> Iterator[dict[str, Any]]:
    """The values of each trial by the name of the column, and others that have no column."""
    for result in trials.results:
        metrics = {f"{METRIC}{name}": value for name, value in result.metrics.items()}
        yield {RUN: trials.run.name, **result.to_known_data(), **metrics}


def write_csv(trials: StoredTrials, path: Path) -> None:
    """UTF-8 with a line of names; what is not known is empty. Raises OSError."""
    with path.open("w", encoding="utf-8", newline="") as file:
        # With the ends of lines of RFC 4180: with others, some versions do not quote a carriage return.
        writer = csv.DictWriter(file, columns_of(trials), extrasaction="ignore")
        writer.writeheader()
        for row in rows_of(trials):
            writer.writerow({name: cell(value) for name, value in row.items()})


def cell(value: Any) -> Any:
    """True and false as in JSON, which more tools read than Python's."""
    return str(value).lower() if isinstance(value, bool) else value
