"""The command line `pytest-super`, for everything that is not a test run."""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from keyword import iskeyword
from typing import Any

from pytest_super.errors import SuperError
from pytest_super.platform import obey_interrupts
from pytest_super.words import printable

# In the order in which `pytest-super --help` lists them.
COMMANDS = (
    "init",
    "validate",
    "verify",
    "schema",
    "import",
    "mask",
    "paper",
    "generate",
    "rescore",
    "why",
    "fork",
    "stats",
    "view",
    "export",
    "compare",
    "baseline",
    "runs",
    "image",
    "trial",
    "prompt",
)
# As shells report a program that SIGINT has ended.
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand and return the exit status.

    0: done. 1: the command's input is wrong, or the command found a problem. 2: the command line itself is
    wrong. 130: interrupted by Ctrl-C. A subcommand can define more.
    """
    obey_interrupts()
    words = sys.argv[1:] if arguments is None else list(arguments)
    # Import only the named subcommand, because `trial` runs once for each action of an agent.
    named = [name for name in COMMANDS if name in words[:1]]
    parsed = parse(words, named or COMMANDS)
    parsed.words = words
    try:
        status: int = parsed.run(parsed)
        sys.stdout.flush()
    except SuperError as error:
        print(f"pytest-super: {printable(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("pytest-super: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output, such as `head`, has ended. Python would complain when it flushes the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


class Parser(argparse.ArgumentParser):
    """Refuses an option that is given twice, unless its action is `append`: argparse would keep the last."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        for name in (None, "store"):
            self.register("action", name, StoreOnce)


class StoreOnce(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        given = vars(namespace).setdefault("given", set())
        if option_string is not None and self.dest in given:
            parser.error(f"{option_string} is given twice, but has one value")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


class ShowVersion(argparse.Action):
    """Like argparse's `version`, but the version is only looked up when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"pytest-super {version('pytest-super')}")
        parser.exit()


def load_command(name: str) -> Any:
    """The module of a subcommand. `import` is in `import_.py`, since a keyword cannot name a module."""
    module = f"{name}_" if iskeyword(name) else name.replace("-", "_")
    return import_module(f"pytest_super.commands.{module}")


def parse(words: Sequence[str], names: Iterable[str] = COMMANDS) -> argparse.Namespace:
    """The arguments of one of these subcommands. `further` has what it hands on; only `fork` does."""
    top = parser(names)
    parsed, further = top.parse_known_args(words)
    if further and not hasattr(parsed, "takes_further"):
        top.error(f"unrecognized arguments: {' '.join(further)}")
    parsed.further = further
    return parsed


def parser(names: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of these subcommands. Parsed arguments have `run`, the function of the subcommand."""
    top = Parser(prog="pytest-super", description=__doc__)
    top.add_argument("--version", action=ShowVersion, nargs=0, help="show the installed version and exit")
    subparsers = top.add_subparsers(required=True, metavar="COMMAND")
    for name in names:
        command = load_command(name)
        # Without a help text it is not listed.
        subparser = subparsers.add_parser(name, **({"help": command.HELP} if command.HELP else {}))
        subparser.set_defaults(run=command.run)
        command.add_arguments(subparser)
    return top
