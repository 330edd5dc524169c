"""`pytest-super mask FOLDER --target …`: replace the bodies of functions in Python files by stubs."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from pytest_super.commands.json_file import write_json
from pytest_super.errors import SuperError
from pytest_super.functions.leaks import Leak, find_leaks, gold_of
from pytest_super.functions.masking import MaskedFunction, masked_files, write_masked
from pytest_super.functions.source import SEPARATOR
from pytest_super.words import counted, printable_line


def add_function_arguments(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("functions of a folder")
    group.add_argument(
        "--target",
        action="append",
        default=[],
        dest="targets",
        metavar="FILE::NAME",
        help="a function, such as `src/model.py::Model.forward`; can be repeated",
    )
    group.add_argument(
        "--in-place", action="store_true", help="change the folder itself instead of writing a copy"
    )
    group.add_argument(
        "--leaks", action="store_true", help="also report what else in the folder gives the bodies away"
    )
    group.add_argument("--json", type=Path, metavar="FILE", help="write what was masked there")


def mask_folder(arguments: Namespace) -> int:
    """The exit status. Raises SuperError."""
    if not arguments.path.is_dir():
        raise SuperError(f"{arguments.path} is not a folder")
    if not arguments.targets:
        raise SuperError(f"{arguments.path}: name the functions by --target=FILE::NAME")
    if arguments.in_place == bool(arguments.output):
        raise SuperError(
            f"{arguments.path}: state one of --output=DIR, for a masked copy, and --in-place, "
            "which overwrites the folder's own files"
        )
    masked = masked_files(arguments.path, arguments.targets)
    write_masked(arguments.path, arguments.output, masked)
    functions = [
        (f"{path}{SEPARATOR}{one.name}", one) for path, file in masked.items() for one in file.functions
    ]
    for target, one in functions:
        print(printable_line(f"{target}: {counted(one.body_lines, 'line')} masked (sha256 {one.sha256})"))
    leaks: list[Leak] = []
    if arguments.leaks:
        gold = [gold_of(target, one.body) for target, one in functions]
        leaks = list(find_leaks(arguments.output or arguments.path, gold))
    for leak in leaks:
        about = f" ({leak.target})" if leak.target else ""
        print(printable_line(f"leak: {leak.path}: {leak.detail}{about}"))
    if arguments.json:
        rows = [{"target": target, **facts(one)} for target, one in functions]
        write_json(arguments.json, {"functions": rows, "leaks": [leak._asdict() for leak in leaks]})
    return 1 if leaks else 0


def facts(function: MaskedFunction) -> dict[str, Any]:
    """The facts leave out the body, so a file of them can lie next to the masked folder."""
    return {name: value for name, value in function._asdict().items() if name != "body"}
