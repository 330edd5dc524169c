"""`pytest-super mask`: propose sub-problems of a solution, or prove those of a task file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction

SANDBOXES = ("auto", "docker", "local")
# Options that go with --check, and their names in the namespace.
OF_CHECK = {"--id": "id", "--sandbox": "sandbox", "--image": "image", "--pip-config": "pip_config"}


def add_mask_parser(subparsers: _SubParsersAction[ArgumentParser]) -> None:
    """Add `mask` to the command line; its namespace has `run`, a function that takes the namespace."""
    parser = subparsers.add_parser("mask", help="propose sub-problems, or prove those of a task file")
    parser.add_argument("path", type=Path, metavar="PATH", help="a notebook or a task file")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the YAML there")
    parser.add_argument("--check", action="store_true", help="prove a task file's sub-problems in kernels")
    parser.add_argument(
        "--id", action="append", default=[], help="with --check: only this sub-problem; may be repeated"
    )
    parser.add_argument(
        "--sandbox", choices=SANDBOXES, help="with --check: where kernels run (default: auto)"
    )
    parser.add_argument("--image", help="with --check: the container image")
    parser.add_argument("--pip-config", type=Path, help="with --check: a pip.conf for containers")
    parser.set_defaults(run=run_mask)


def run_mask(arguments: Namespace) -> int:
    from pytest_super.masking import command

    refuse_idle_options(arguments)
    if not arguments.check:
        return command.write_proposal(arguments.path, arguments.output)
    return command.check(
        arguments.path, arguments.id, arguments.sandbox or "auto", arguments.image, arguments.pip_config
    )


def refuse_idle_options(arguments: Namespace) -> None:
    """Raises SuperError for an option that would have no effect."""
    from pytest_super.errors import SuperError

    if arguments.check and arguments.output is not None:
        raise SuperError("--output goes with a proposal: --check writes no file")
    given = [option for option, name in OF_CHECK.items() if getattr(arguments, name)]
    if given and not arguments.check:
        raise SuperError(
            f"{', '.join(given)} {'goes' if len(given) == 1 else 'go'} with --check, which is not given"
        )
