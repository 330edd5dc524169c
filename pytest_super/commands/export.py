"""`pytest-super export`: a stored run, or task files, in the forms that other tools read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.commands.stored_run import NAMES, add_directory, run_of
from pytest_super.errors import SuperError
from pytest_super.words import named, printable_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator

    from pytest_super.report.export.trials import StoredTrials

HELP = "write a run, or tasks, in the form of another tool"
# The names of report/export/formats, which is only imported when something is exported.
OF_RUNS = ("inspect", "atif", "csv", "parquet", "calls")
OF_TASKS = ("harbor",)
MOST_UNREAD = 20


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = "Exit status: 0 everything is exported, 1 something could not be read or written."
    parser.add_argument(
        "names",
        nargs="*",
        metavar="RUN|PATH",
        help=f"{NAMES} (default: latest); with {named(OF_TASKS, 1)}: task files or folders of them",
    )
    parser.add_argument("--format", required=True, choices=(*OF_RUNS, *OF_TASKS), help="the form")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="PATH", help="the file or the folder (default: RUN.FORMAT)"
    )
    add_directory(parser)
    tasks = parser.add_argument_group("tasks")
    tasks.add_argument(
        "--base",
        default="python:3.11-bookworm",
        metavar="IMAGE",
        help="the image of tasks that name none (default: %(default)s)",
    )
    tasks.add_argument(
        "--force", action="store_true", help="overwrite files that were changed since the last export"
    )


def run(arguments: Namespace) -> int:
    return export_tasks(arguments) if arguments.format in OF_TASKS else export(arguments)


def export_tasks(arguments: Namespace) -> int:
    from pytest_super.authoring.exporting.harbor.command import export_harbor
    from pytest_super.commands.task_files import valid_tasks

    if not arguments.names or arguments.output is None:
        raise SuperError(
            f"--format={arguments.format} needs task files, and --output with the folder for them"
        )
    tasks = valid_tasks([Path(name) for name in arguments.names])
    return export_harbor(tasks, arguments.output, base_image=arguments.base, force=arguments.force)


def export(arguments: Namespace) -> int:
    from pytest_super.report.export.formats import export_run
    from pytest_super.words import counted

    if len(arguments.names) > 1:
        raise SuperError("name one run")
    arguments.run_name = next(iter(arguments.names), "latest")
    path, trials = export_run(run_of(arguments), arguments.format, arguments.output)
    for line in notes_of(trials):
        print(f"pytest-super: {printable_line(line)}", file=sys.stderr)
    print(f"{path}: {counted(len(trials.results), 'trial')}")
    return 1 if trials.unread else 0


def notes_of(trials: StoredTrials) -> Iterator[str]:
    from pytest_super.words import counted

    yield from trials.unread[:MOST_UNREAD]
    if (more := len(trials.unread) - MOST_UNREAD) > 0:
        yield f"and {more} more that cannot be read"
    if trials.unfinished:
        yield f"left out, because they have not ended: {counted(trials.unfinished, 'trial')}"
