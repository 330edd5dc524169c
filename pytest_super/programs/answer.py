"""The answer of an agent's program: its answer file, else its last message, else one question."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pytest_super.errors import InfrastructureError, TrialEnded
from pytest_super.store.trajectory import Action
from pytest_super.trial.program import NOT_FOUND, ProgramResult
from pytest_super.words import exit_words

if TYPE_CHECKING:
    from pytest_super.kernel.files import SandboxFiles
    from pytest_super.trial.trial import Trial


# What a shell exits with if it cannot execute a file, or cannot find it.
NOT_STARTED = (126, NOT_FOUND)
LONGEST_LINE = 200


@contextmanager
def preparing(trial: Trial) -> Iterator[None]:
    """The block does what a program needs before it starts: an exception is ours, and not the agent's."""
    try:
        yield
    except Exception as error:
        trial.failure = not_started(f"{type(error).__name__}: {error}")
        raise TrialEnded("error") from error


def not_started(why: str) -> InfrastructureError:
    return InfrastructureError(f"the agent's program was not started: {why}")


def explain_no_answer(trial: Trial, ran: ProgramResult, problem: str, *, has_acted: bool) -> None:
    """Put the end of the program into the trial's error, if it ended by itself.

    `problem` says why there is an answer file that cannot be used, if there is one. Raises
    InfrastructureError if the program could not be started, and a final one if its command was not found, or
    if it has asked its model only for what is not offered. It did start if it `has_acted` in the trial or
    has asked the model.
    """
    is_idle = not has_acted and not trial.budget.model_seconds
    if ran.not_started and is_idle:
        raise not_started(ran.not_started)
    if ran.exit_code is None:
        return
    last = ran.result.text.strip().rpartition("\n")[2][:LONGEST_LINE]
    how = ": ".join(filter(None, (exit_words(ran.exit_code), last)))
    if ran.refused and is_idle:
        raise InfrastructureError(
            f"the agent's program cannot use the model: it asked for {ran.refused} {how}", is_final=True
        )
    if ran.exit_code in NOT_STARTED and is_idle:
        what = "check the command line of the agent, and whether its program is installed where it runs"
        raise InfrastructureError(f"the agent's program could not start: {how}: {what}", is_final=True)
    trial.error = f"{problem}; {how}" if problem else how


# A message is read from its end, where its answer is.
LONGEST_MESSAGE = 50_000
# A real answer is a few numbers, but a program can write any file.
LONGEST_FILE = 2**20
NO_ANSWER = "[There is no answer file: nothing was submitted.]"
NONE = "NONE"
QUESTION = """\
An agent has worked on the task below, and ended with the message below. State the answer that the message \
gives, as the JSON that the task asks for, without any other text. Take all values from the message. If it \
gives no answer, say {none}.

# The task

{query}

# The message

{message}
"""
_BLOCK = re.compile(r"^[ \t]*```[^\n]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
_OPENING = re.compile(r"[{\[]")


class AnswerReader:
    """Reads the answer from its file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_found = False
        self.value: Any = None
        self.problem = ""
        """Why an answer file that is there cannot be used."""

    def read(self, read_file: Callable[[str, int], bytes]) -> tuple[str, str]:
        """The file's text or why there is none, and `ok` or `error`; `read_file` is as SandboxFiles.read."""
        try:
            text = read_file(self.path, LONGEST_FILE).decode()
            self.value = json.loads(text)
        except FileNotFoundError:
            return NO_ANSWER, "ok"
        except OSError as error:
            self.problem = f"the answer file cannot be read: {error.strerror}"
        except (ValueError, RecursionError) as error:
            self.problem = f"the answer file is not JSON: {error}"
        else:
            self.is_found = True
            return text, "ok"
        return f"[T{self.problem[1:]}. Nothing was submitted.]", "error"


def take_answer(trial: Trial, answer_file: str, message_file: str = "") -> None:
    """Submit the answer that the last program has left in its answer file or as a message.

    A message counts only if the program ended well: else it tells of an error. If it has no JSON, the model
    is asked for it once, which is less than to resume the program, and the same for every program.
    """
    reader = AnswerReader(answer_file)
    ran = trial.ran
    message = ""

    def read(files: SandboxFiles) -> tuple[str, str]:
        nonlocal message
        told = reader.read(files.read)
        if reader.is_found:
            return told
        message = read_message(files, message_file) if message_file and ran and ran.exit_code == 0 else ""
        if found := list(answers_in(message)):
            reader.is_found, reader.value = True, found[0]
            return f"{told[0]}\n[The answer is that of the last message.]\n{message}", "ok"
        if ran is not None:
            explain_no_answer(trial, ran, reader.problem, has_acted=False)
        return f"{told[0]}\n{message}".strip(), told[1]

    # In `use`, because there an InfrastructureError is not the agent's own exception.
    trial.use(Action(type="read_answer", content=answer_file), read)
    if not reader.is_found and message and trial.model is not None:
        ask_for_answer(trial, message, reader)
    if reader.is_found:
        trial.submit(reader.value)


def read_message(files: SandboxFiles, path: str) -> str:
    """The end of the program's last message; "" if there is none."""
    try:
        return files.read(path, LONGEST_FILE).decode("utf-8", "replace").strip()[-LONGEST_MESSAGE:]
    except OSError:
        return ""


def ask_for_answer(trial: Trial, message: str, reader: AnswerReader) -> None:
    question = QUESTION.format(query=trial.task.query, message=message, none=NONE)
    text = trial.complete([{"role": "user", "content": question}]).text
    found = list(answers_in(text))
    trial.use(
        Action(type="ask_for_answer", content=question),
        lambda _kernel: (text, "ok") if found else (f"{text}\n{NO_ANSWER}", "error"),
    )
    if found:
        reader.is_found, reader.value = True, found[0]
        trial.error = None


def answers_in(message: str) -> Iterator[Any]:
    """The JSON values of a message: all of it, its last block, then objects and arrays from the last on."""
    blocks = [match[1] for match in _BLOCK.finditer(message)]
    for text in (message, *reversed(blocks)):
        try:
            yield json.loads(text)
        except (ValueError, RecursionError):
            continue
    values = list(values_within(message))
    yield from reversed([value for value in values if isinstance(value, dict)])
    yield from reversed([value for value in values if isinstance(value, list)])


def values_within(text: str) -> Iterator[Any]:
    """The outermost objects and arrays in a text, in order."""
    decoder, at = json.JSONDecoder(), 0
    while opening := _OPENING.search(text, at):
        try:
            value, at = decoder.raw_decode(text, opening.start())
        except RecursionError:
            # From each of thousands of brackets, it would come as deep again.
            return
        except ValueError:
            at = opening.end()
        else:
            yield value
