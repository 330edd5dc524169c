"""Any program as an agent: run inside the sandbox, with the query in one file and its answer in another."""

from __future__ import annotations

import difflib
import json
import re
import shlex
from typing import TYPE_CHECKING, Any

from pytest_super.errors import SuperError
from pytest_super.store.trajectory import Action

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_super.trial.trial import Trial

    ReadFile = Callable[[str, int], bytes]
    """As `Kernel.read_file`: path and the most bytes it may have. Raises OSError."""

PREFIX = "command:"
NAMES = ("query_file", "answer_file", "workdir", "model")
# `${name}` is the shell's, and what is none of ours may be anybody's: JSON, awk, a format.
PLACE = re.compile(r"(?<!\$)\{([a-z_]+)\}")
QUERY, ANSWER = ".super-query.md", ".super-answer.json"
# An answer is a few numbers; a program may leave any file.
LONGEST_ANSWER = 2**20
NO_ANSWER = "[There is no answer file: nothing was submitted.]"
# So that what was printed is there when the program is killed.
ENVIRONMENT = {"PYTHONUNBUFFERED": "1"}


class CommandAgent:
    """Runs a command line by the shell of the sandbox, in the directory in which the kernel is.

    A shell, since many agents take the task as an argument: `agent --task "$(cat {query_file})"`. It is the
    sandbox's, never the host's.
    """

    def __init__(self, command: str) -> None:
        """`command`: a line for `sh`, with any of the places {query_file}, {answer_file}, {workdir}, {model}.

        Raises SuperError for one that is empty, whose quotes are open, or that has a place of another name.
        """
        self.command = command.strip()
        check(PREFIX, self.command, NAMES)

    def run(self, trial: Trial) -> None:
        workdir = trial.kernel.workdir
        query, answer = f"{workdir}/{QUERY}", f"{workdir}/{ANSWER}"
        values = {"query_file": query, "answer_file": answer, "workdir": workdir, "model": model_name(trial)}
        trial.run_program(fill(self.command, values), ENVIRONMENT, {query: trial.task.query})
        reader = AnswerReader(answer)
        trial.use(Action(type="read_answer", content=answer), lambda kernel: reader.read(kernel.read_file))
        if reader.is_found:
            trial.submit(reader.value)


class AnswerReader:
    """Takes the answer out of its file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_found = False
        self.value: Any = None

    def read(self, read_file: ReadFile) -> tuple[str, str]:
        """The file's text, or why there is no answer; and `ok` or `error`."""
        try:
            text = read_file(self.path, LONGEST_ANSWER).decode()
            self.value = json.loads(text)
        except FileNotFoundError:
            return NO_ANSWER, "ok"
        except OSError as error:
            return f"[The answer file cannot be read: {error.strerror}. Nothing was submitted.]", "error"
        except (ValueError, RecursionError) as error:
            return f"[The answer file is no JSON: {error}. Nothing was submitted.]", "error"
        self.is_found = True
        return text, "ok"


def model_name(trial: Trial) -> str:
    """The model's name without the provider's; the gateway asks the run's model, whatever a request says."""
    name = str(getattr(trial.model, "name", "model"))
    return "scripted" if name.startswith("scripted:") else name.partition("/")[2] or name


def fill(command: str, values: dict[str, str]) -> str:
    """The command with the value of each place, quoted where it has to be."""
    return PLACE.sub(lambda place: shlex.quote(values[place[1]]) if place[1] in values else place[0], command)


def check(prefix: str, command: str, names: Sequence[str]) -> None:
    """Raises SuperError for a line that is none, or that has a place whose name is nearly one of `names`."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise SuperError(f"the agent `{prefix} {command}`: {error}") from None
    if not words:
        raise SuperError(f"the agent `{prefix}` needs a command line behind it")
    for name in PLACE.findall(command):
        if name not in names and difflib.get_close_matches(name, names):
            known = ", ".join(f"{{{known}}}" for known in names)
            raise SuperError(f"the agent `{prefix} {command}`: there is no {{{name}}}, but {known}")
