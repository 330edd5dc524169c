"""`pytest-super prompt extract`: print the system prompt of a published trajectory."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

HELP = ""


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    extract = actions.add_parser(
        "extract", help="print the system prompt of a history.ipynb, for --super-prompt"
    )
    extract.add_argument("history", type=Path, metavar="HISTORY")


def run(arguments: Namespace) -> int:
    from pytest_super.store.published import read_history

    # The output is meant for a file, so nothing is added to the prompt, not even a line end.
    sys.stdout.write(read_history(arguments.history).system_prompt)
    return 0
