"""Exports of a large stored run: time, memory, and the size of what is written.

Usage: python benchmarks/export.py [--small]

The runs are those of `page.py`: 10,000 trials without trajectories, next to Python's csv writer on their
lines, and trials with a megabyte of output each, next to reading and writing their lines with `json` alone.
Each is timed in a fresh process.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from page import LONG_TRIALS, MANY_TRIALS, STEPS, measured, stored_run
from rows import print_row

# A run of gigabytes has to be exported in as much memory as one of megabytes.
MEGABYTES = "300 MB"
EXPORT = (
    "import shutil\nfrom pytest_super.report.export.formats import export_run",
    "shutil.rmtree(sys.argv[3], ignore_errors=True)\n"
    "_, exported = export_run(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))\n"
    "assert not exported.unread",
)
BARE_CSV = (
    "import csv",
    "with open(Path(sys.argv[1], 'results.jsonl')) as lines, open(sys.argv[2], 'w', newline='') as file:\n"
    "    writer = csv.writer(file)\n"
    "    for line in lines:\n"
    "        writer.writerow(json.loads(line).values())",
)
BARE_JSON = (
    "",
    "with open(sys.argv[2], 'w') as file:\n"
    "    for path in Path(sys.argv[1]).rglob('trajectory.jsonl'):\n"
    "        json.dump([json.loads(line) for line in path.open()], file)",
)


def size_of(path: Path) -> float:
    """Megabytes of a file, or of the files of a folder."""
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files) / 1e6


def print_export(run: Path, name: str, what: str, bare: float, of: str) -> None:
    output = run.with_name(f"out.{name}")
    seconds, megabytes = measured(EXPORT, run, name, output)
    print_row(
        f"{what} as `{name}`, {size_of(output):.1f} MB / {of} (`export.py`)",
        f"{seconds:.2f} s, {megabytes:.0f} MB",
        peer=f"{bare:.2f} s",
        ratio=seconds / bare,
        wanted=MEGABYTES,
    )
    shutil.rmtree(output) if output.is_dir() else output.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="8 and 100 trials")
    is_small = parser.parse_args().small
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        many = stored_run(folder, 100 if is_small else MANY_TRIALS, 0)
        count = 100 if is_small else MANY_TRIALS
        bare, _ = measured(BARE_CSV, many, folder / "bare")
        for form in ("csv", "inspect", "atif"):
            print_export(many, form, f"{count:,} stored trials", bare, "`csv` of the lines")
        long = stored_run(folder, 8 if is_small else LONG_TRIALS, STEPS)
        count = 8 if is_small else LONG_TRIALS
        bare, _ = measured(BARE_JSON, long, folder / "bare")
        for form in ("inspect", "atif"):
            print_export(long, form, f"{count} trials with 1 MB of output", bare, "`json` of the lines")


if __name__ == "__main__":
    main()
