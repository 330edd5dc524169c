"""A run as a table with one row for each trial, in CSV or in Parquet."""

from __future__ import annotations

import csv
from itertools import islice
from typing import TYPE_CHECKING, Any

from pytest_super.errors import SuperError
from pytest_super.report.summary import metric_names
from pytest_super.store.results import stored_fields

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_super.report.export.trials import StoredTrials

RUN, METRIC = "run", "metric_"
# Rows of a group in Parquet: what a reader loads at once.
GROUP = 10_000


def columns_of(trials: StoredTrials) -> dict[str, type]:
    """The names of the columns and the types of their values: the same for all runs, but for the metrics."""
    names = metric_names(trials.results)
    fields = {one.name: one.kind for one in stored_fields() if one.kind not in (list, dict)}
    return {RUN: str, **fields, **{f"{METRIC}{name}": float for name in names}}


def rows_of(trials: StoredTrials) -> Iterator[dict[str, Any]]:
    """The values of each trial by the name of the column, and others that have no column."""
    for result in trials.results:
        metrics = {f"{METRIC}{name}": value for name, value in result.metrics.items()}
        yield {RUN: trials.run.name, **result.to_known_data(), **metrics}


def write_csv(trials: StoredTrials, path: Path) -> None:
    """UTF-8 with a line of names; what is not known is empty. Raises OSError."""
    with path.open("w", encoding="utf-8", newline="") as file:
        # With the ends of lines of RFC 4180: with others, some versions do not quote a carriage return.
        writer = csv.DictWriter(file, list(columns_of(trials)), extrasaction="ignore")
        writer.writeheader()
        for row in rows_of(trials):
            writer.writerow({name: cell(value) for name, value in row.items()})


def cell(value: Any) -> Any:
    """True and false as in JSON, which more tools read than Python's."""
    return str(value).lower() if isinstance(value, bool) else value


def write_parquet(trials: StoredTrials, path: Path) -> None:
    """Raises OSError, and SuperError without pyarrow."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise SuperError("Parquet needs pyarrow: pip install 'pytest-super[parquet]'") from None
    types = {
        str: pyarrow.string(),
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        bool: pyarrow.bool_(),
    }
    schema = pyarrow.schema([(name, types[kind]) for name, kind in columns_of(trials).items()])
    with parquet.ParquetWriter(path, schema) as writer:
        rows = rows_of(trials)
        while group := list(islice(rows, GROUP)):
            writer.write_table(pyarrow.Table.from_pylist(group, schema=schema))
