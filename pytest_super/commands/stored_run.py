"""The argument of commands that names a stored run, and where runs are stored."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

RUNS = Path(".super")
NAMES = "latest, an id, or the path of a run"


def add_run(parser: ArgumentParser, *, is_optional: bool = False) -> None:
    if is_optional:
        parser.add_argument(
            "run_name", nargs="?", default="latest", metavar="RUN", help=f"{NAMES} (default: latest)"
        )
    else:
        parser.add_argument("run_name", metavar="RUN", help=NAMES)
    add_directory(parser)


def add_directory(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--dir", type=Path, default=RUNS, metavar="DIR", help="where runs are stored (.super)"
    )


def run_of(arguments: Namespace) -> Path:
    """The folder of the run. Raises SuperError."""
    from pytest_super.store.stored_runs import find_run

    return find_run(arguments.dir, arguments.run_name)
