"""`pytest-super export-tasks`: task files in the forms of other frameworks."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_super.commands.task_files import add_paths, valid_tasks

HELP = "write tasks in the form of another framework"
FORMATS = ("harbor",)


def add_arguments(parser: ArgumentParser) -> None:
    add_paths(parser)
    parser.epilog = "Exit status: 0 every task was written, 1 one has no such form."
    parser.add_argument("--format", required=True, choices=FORMATS, help="the form")
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="folder for the tasks, a folder each"
    )
    parser.add_argument(
        "--base",
        default="python:3.11-bookworm",
        metavar="IMAGE",
        help="the image of tasks that name none (default: %(default)s)",
    )
    parser.add_argument(
        "--force", action="store_true", help="overwrite files that were changed since the last export"
    )


def run(arguments: Namespace) -> int:
    from pytest_super.authoring.exporting.harbor.command import export_harbor

    tasks = valid_tasks(arguments.paths)
    return export_harbor(tasks, arguments.output, base_image=arguments.base, force=arguments.force)
