"""The subcommands of `pytest-super`, one module each.

To add one, write a module with the members of `Command` and add its name to COMMANDS.
"""

from argparse import ArgumentParser, Namespace
from importlib import import_module
from keyword import iskeyword
from typing import Protocol, cast

# In the order in which `pytest-super --help` lists them.
COMMANDS = (
    "init",
    "validate",
    "verify",
    "schema",
    "import",
    "mask",
    "generate",
    "rescore",
    "stats",
    "image",
    "prune",
    "trial",
    "prompt",
)


class Command(Protocol):
    """The members of a subcommand's module."""

    @property
    def HELP(self) -> str:
        """One line for `pytest-super --help`."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options of the subcommand."""

    def run(self, arguments: Namespace) -> int:
        """Carry it out. Returns the exit status; raises SuperError for a mistake of the user."""


def load_command(name: str) -> Command:
    """The module of a subcommand. `import` is in `import_.py`, since a keyword cannot name a module."""
    module = f"{name}_" if iskeyword(name) else name
    return cast("Command", import_module(f"{__name__}.{module}"))
