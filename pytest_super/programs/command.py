"""Runs any program inside the sandbox as an agent: one file has the query, another the program's answer."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_super.errors import SuperError
from pytest_super.programs.answer import preparing, take_answer

if TYPE_CHECKING:
    from pytest_super.trial.trial import Trial

PREFIX = "command:"
NAMES = ("query_file", "answer_file", "workdir", "model")
# Not `${name}`, which belongs to the shell. Unknown names stay: they can be JSON, awk or a format.
PLACEHOLDER = re.compile(r"(?<!\$)\{([a-z_]+)\}")
QUERY, ANSWER = ".super-query.md", ".super-answer.json"
# Otherwise output that is still buffered is lost when the program is killed.
ENVIRONMENT = {"PYTHONUNBUFFERED": "1"}


class CommandAgent:
    """Runs a command line in the sandbox's shell, in the kernel's current directory."""

    def __init__(self, command: str) -> None:
        """`command`: a line for `sh` with the placeholders {query_file}, {answer_file}, {workdir}, {model}.

        Raises SuperError for an empty line, an open quote, or a misspelt placeholder.
        """
        self.command = command.strip()
        check(PREFIX, self.command, NAMES)

    def run(self, trial: Trial) -> None:
        with preparing(trial):
            workdir = trial.kernel.workdir
            query, answer = f"{workdir}/{QUERY}", f"{workdir}/{ANSWER}"
            values = {
                "query_file": query, "answer_file": answer, "workdir": workdir, "model": model_name(trial)
            }  # fmt: skip
            line = fill(self.command, values)
        trial.run_program(line, ENVIRONMENT, {query: trial.task.query})
        take_answer(trial, answer)


def model_name(trial: Trial) -> str:
    """The model's name without its provider. The gateway ignores it and always calls the run's model."""
    name = str(getattr(trial.model, "name", "model"))
    return "scripted" if name.startswith("scripted:") else name.partition("/")[2] or name


def fill(command: str, values: dict[str, str]) -> str:
    """The command with each placeholder replaced by its value, quoted for the shell."""
    return PLACEHOLDER.sub(
        lambda found: shlex.quote(values[found[1]]) if found[1] in values else found[0], command
    )


def check(prefix: str, command: str, names: Sequence[str]) -> None:
    """Raises SuperError for an empty or malformed line, or a placeholder that resembles one of `names`."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise SuperError(f"the agent `{prefix} {command}`: {error}") from None
    if not words:
        raise SuperError(f"the agent `{prefix}` needs a command line after the colon")
    for name in PLACEHOLDER.findall(command):
        if name not in names and difflib.get_close_matches(name, names):
            known = ", ".join(f"{{{known}}}" for known in names)
            raise SuperError(f"the agent `{prefix} {command}`: unknown placeholder {{{name}}}: use {known}")
