"""The subcommands of `pytest-super`, one module each.

To add one, write a module with these members and add its name to COMMANDS:

HELP                   one line for `pytest-super --help`; "" for what other programs call
add_arguments(parser)  declares its options
run(arguments)         carries it out; returns the exit status; raises SuperError for a mistake of the user
"""

from importlib import import_module
from keyword import iskeyword
from typing import Any

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


def load_command(name: str) -> Any:
    """The module of a subcommand. `import` is in `import_.py`, since a keyword cannot name a module."""
    module = f"{name}_" if iskeyword(name) else name.replace("-", "_")
    return import_module(f"{__name__}.{module}")
