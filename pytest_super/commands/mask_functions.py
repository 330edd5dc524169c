"""`pytest-super mask-functions`: replace the bodies of functions in a folder of Python files by stubs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.commands.json_file import write_json
from pytest_super.errors import SuperError, printable_line
from pytest_super.functions.repository import SEPARATOR, mask_functions

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from pytest_super.functions.edits import Docstrings

HELP = "replace the bodies of functions in a folder of Python files by stubs"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("repository", type=Path, metavar="REPOSITORY", help="a folder with Python files")
    parser.add_argument(
        "--target",
        action="append",
        required=True,
        dest="targets",
        metavar="FILE::NAME",
        help="a function, such as `src/model.py::Model.forward`; can be repeated",
    )
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="write a copy there (default: change the folder itself)"
    )
    parser.add_argument(
        "--docstring",
        choices=("keep", "drop", "replace"),
        default="keep",
        help="what happens to the functions' docstrings (default: keep)",
    )
    parser.add_argument(
        "--descriptions",
        type=Path,
        metavar="FILE",
        help="with --docstring=replace: a JSON file with the new docstring of each target",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was masked there")


def run(arguments: Namespace) -> int:
    if not arguments.repository.is_dir():
        raise SuperError(f"{arguments.repository} is not a folder")
    docstrings = docstrings_of(arguments.docstring, arguments.descriptions)
    masked = mask_functions(
        arguments.repository, arguments.targets, output=arguments.output, docstrings=docstrings
    )
    rows = [
        {"target": f"{path}{SEPARATOR}{one.name}", **one._asdict()}
        for path, file in masked.items()
        for one in file.functions
    ]
    for row in rows:
        line = f"{row['target']}: {row['body_lines']} lines masked (sha256 {row['sha256']})"
        print(printable_line(line))
    if arguments.json:
        write_json(arguments.json, rows)
    return 0


def docstrings_of(choice: str, file: Path | None) -> Docstrings:
    """Raises SuperError."""
    if (choice == "replace") != (file is not None):
        raise SuperError("--docstring=replace and --descriptions=FILE need each other")
    if file is None:
        return "keep" if choice == "keep" else "drop"
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SuperError(f"{file} cannot be read: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise SuperError(f"{file}: it must be an object with a text for each target")
    return found
