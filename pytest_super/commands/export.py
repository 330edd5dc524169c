"""`pytest-super export`: a stored run in the forms that other tools read."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_super.commands.stored_run import add_run, run_of
from pytest_super.words import counted, printable_line

HELP = "write a run in the form of another tool"
# The names of report/export/formats, which is only imported when something is exported.
FORMATS = ("inspect", "atif", "csv", "calls")
MOST_UNREAD = 20


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = "Exit status: 0 everything is exported, 1 something could not be read or written."
    add_run(parser, is_optional=True)
    parser.add_argument("--format", required=True, choices=FORMATS, help="the form")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="PATH", help="the file or the folder (default: RUN.FORMAT)"
    )


def run(arguments: Namespace) -> int:
    from pytest_super.report.export.formats import export_run

    path, trials = export_run(run_of(arguments), arguments.format, arguments.output)
    notes = list(trials.unread[:MOST_UNREAD])
    if (more := len(trials.unread) - MOST_UNREAD) > 0:
        notes.append(f"and {more} more that cannot be read")
    if trials.unfinished:
        notes.append(f"left out, because they have not ended: {counted(trials.unfinished, 'trial')}")
    for line in notes:
        print(f"pytest-super: {printable_line(line)}", file=sys.stderr)
    print(f"{path}: {counted(len(trials.results), 'trial')}")
    return 1 if trials.unread else 0
