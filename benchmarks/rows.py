"""The rows of the benchmark table of docs/maintainers/speed.md: every script prints its own, `all.py` all."""

from __future__ import annotations

HEADER = "| | ours | peer | ratio | wanted |\n|---|---|---|---|---|"


def print_row(what: str, ours: str, *, peer: str = "", ratio: float | None = None, wanted: str = "") -> None:
    """Print one row in Markdown. `wanted` is the highest acceptable ratio, time or size."""
    shown = "" if ratio is None else f"{ratio:.2f}"
    # Flushed, so that `all.py` shows each row as soon as it is measured.
    print(f"| {what} | {ours} | {peer} | {shown} | {wanted} |", flush=True)


def is_row(line: str) -> bool:
    return line.startswith("| ")
