"""`pytest-super paper new`: a first task file for the code of a paper."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_super.commands.sandboxes import add_sandbox_arguments, kernel_starter
from pytest_super.option_types import amount, told

HELP = "write a first task file for the code of a paper, with the values that it yields"
# Each with its help; they can be repeated.
REPEATED = {
    "--command": ("LINE", "an experiment: a line for sh, in the folder of the repository"),
    "--target": ("FILE::NAME", "a function to mask (default: functions that the commands execute)"),
    "--package": ("NAME", "what the code needs, as pip names it"),
}


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    new = actions.add_parser("new", help="write the file, and run the original code on it")
    place = (
        "a folder below that of the task file, a git URL (URL@COMMIT), or NAME==VERSION of the package index"
    )
    new.add_argument("repository", metavar="REPOSITORY", help=place)
    for option, (value, meaning) in REPEATED.items():
        new.add_argument(
            option,
            action="append",
            default=[],
            dest=f"{option[2:]}s",
            metavar=value,
            required=option == "--command",
            help=f"{meaning}; can be repeated",
        )
    new.add_argument(
        "--pattern", metavar="REGEX", help="with groups `name` and `value` (default: `name: 1`, `name = 1`)"
    )
    new.add_argument(
        "--block", metavar="REGEX", help="finds headings: a value's name begins with the last one before it"
    )
    new.add_argument(
        "--timeout", type=told(amount), metavar="SECONDS", help="how long a command can run (default: 600)"
    )
    new.add_argument("--paper", type=Path, metavar="FILE", help="the paper's text (.txt, .md, .pdf)")
    new.add_argument("--output", type=Path, metavar="FILE", help="the task file (default: NAME.task.yaml)")
    new.add_argument("--force", action="store_true", help="overwrite the task file")
    add_sandbox_arguments(new)


def run(arguments: Namespace) -> int:
    from pytest_super.authoring.new_paper import write_paper

    return write_paper(arguments, kernel_starter(arguments, "paper-new", is_trusted=False))
