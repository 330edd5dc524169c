"""`pytest-super schema`: print the JSON Schema of task files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

HELP = "print the JSON Schema of task files"


def add_arguments(parser: ArgumentParser) -> None:
    """There are none."""


def run(_arguments: Namespace) -> int:
    from pytest_super.schema import schema_text

    print(schema_text(), end="")
    return 0
