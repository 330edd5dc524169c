"""`pytest-super generate`: tasks of the set auto, made from repositories with a model."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_super.option_types import amount, parameter, positive, told

HELP = "make tasks from repositories with a model"
JOBS = 4


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "repositories",
        nargs="+",
        metavar="REPOSITORY",
        help="git URL (URL@COMMIT, URL@BRANCH), package-index name (NAME, NAME==VERSION), "
        "or a folder inside the output folder, written with a slash",
    )
    parser.add_argument(
        "--model", required=True, metavar="NAME", help="a name that litellm knows, or scripted:FILE"
    )
    parser.add_argument(
        "--model-arg",
        action="append",
        default=[],
        type=told(parameter),
        metavar="KEY=VALUE",
        help="parameter of every call (VALUE is JSON or else text); can be repeated",
    )
    parser.add_argument(
        "--max-cost", type=told(amount), metavar="X", help="limit in US dollars for all runs into the folder"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("auto"), metavar="DIR", help="folder for tasks and report (auto)"
    )
    parser.add_argument(
        "--jobs", type=told(positive), default=JOBS, metavar="N", help=f"repositories at once ({JOBS})"
    )


def run(arguments: Namespace) -> int:
    from pytest_super.authoring.generate.command import generate

    return generate(arguments)
