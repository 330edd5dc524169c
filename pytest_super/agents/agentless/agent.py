"""AutoExperiment's agentless mode: one generation for each missing function, then the commands once.

The published code (arXiv 2506.19724) writes only the first of several missing functions; this writes each.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import PurePosixPath
from typing import Any

from pytest_super.agents.agentless.retrieval import context_of
from pytest_super.agents.gold import run_to_end
from pytest_super.agents.prompts import read_prompt
from pytest_super.functions.bounded import splice
from pytest_super.functions.source import SourceError
from pytest_super.json_values import loaded
from pytest_super.kernel.cell import SandboxLostError
from pytest_super.model.completion import FilteredError
from pytest_super.option_types import Retrieval
from pytest_super.tasks.public_task import MissingFunction, PublicExperiment
from pytest_super.trial.trial import Trial
from pytest_super.words import clipped

DECODING: dict[str, Any] = {"temperature": 0.2, "max_tokens": 4000}
# Of all commands' outputs, in a prompt.
OUTPUT_CHARACTERS = 20_000
REPORT = "Report the results: answer with one code block that contains the JSON."


class AgentlessAgent:
    """Writes each missing function by one generation, runs each command once, and reports what they print."""

    def __init__(self, retrieval: Retrieval, prompt: str | None = None) -> None:
        self._retrieval = retrieval
        self._prompt = read_prompt("agentless") if prompt is None else prompt

    def run(self, trial: Trial) -> None:
        for function in trial.task.missing:
            self._write(trial, function)
        outputs = [run_command(trial, one) for one in trial.task.experiments]
        has_report = any(one.reported for one in trial.task.experiments)
        trial.submit(self._report(trial, outputs) if has_report else None)

    def _write(self, trial: Trial, function: MissingFunction) -> None:
        path = str(PurePosixPath(trial.task.folder or ".") / function.file)
        try:
            data = trial.kernel.files.read(path)
            context = context_of(trial.kernel.files, trial.task, function, data, self._retrieval)
        except (OSError, SandboxLostError) as error:
            trial.reject(f"`{function.name}` was not written: {error}")
            return
        answer = self._ask(trial, "\n\n".join([trial.task.query, *context]))
        try:
            changed = with_answer(data, function, answer).decode()
            trial.edit(path, data.decode(), changed, thought=answer)
        except (SourceError, UnicodeDecodeError) as error:
            trial.reject(f"`{function.name}` was not written: {error}", thought=answer)

    def _report(self, trial: Trial, outputs: list[str]) -> Any:
        printed = clipped("\n\n".join(outputs), OUTPUT_CHARACTERS)
        text = last_block(self._ask(trial, "\n\n".join([trial.task.query, printed, REPORT])))
        # A report that is not JSON is scored as far as it can be read.
        return loaded(text, text)

    def _ask(self, trial: Trial, text: str) -> str:
        try:
            return trial.complete(
                [{"role": "system", "content": self._prompt}, {"role": "user", "content": text}], **DECODING
            ).text
        except FilteredError as error:
            trial.reject(str(error))
            return ""


def run_command(trial: Trial, experiment: PublicExperiment) -> str:
    step = run_to_end(trial, f"%%sh\ncd '{trial.task.folder or '.'}'\n{experiment.command}\n")
    return f"The experiment {experiment.name} printed:\n{step.observation}"


_BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def last_block(answer: str) -> str:
    """The last code block of an answer, or all of it."""
    blocks: list[str] = _BLOCK.findall(answer)
    return blocks[-1] if blocks else answer


def with_answer(data: bytes, function: MissingFunction, answer: str) -> bytes:
    """The file with the function's body from the answer: its last code block, or all of it.

    With the new imports, functions and constants of the answer. Raises SourceError if there is no such
    function in the answer, or it cannot be parsed, and InfrastructureError.
    """
    code = textwrap.dedent(last_block(answer)).strip("\n")
    name, _, region = function.name.partition("@")
    names = name.partition("#")[0].split(".")
    if region:
        lines = "\n".join([f"# region {region}", code, "# endregion"])
        code = f"def {names[-1]}():\n{textwrap.indent(lines, '    ')}"
    elif not re.search(rf"\bdef\s+{re.escape(names[-1])}\b", code):
        raise SourceError(f"{function.file}: the answer has no definition of `{names[-1]}`")
    wrapped = code
    for outer in reversed(names[:-1]):
        wrapped = f"class {outer}:\n{textwrap.indent(wrapped, '    ')}"
    try:
        return splice(function.file, data, encoded(wrapped), [function.name]).data
    except SourceError:
        # The answer can have the class around the method.
        return splice(function.file, data, encoded(code), [function.name]).data


def encoded(code: str) -> bytes:
    # A model can write characters that no file can have.
    return f"{code}\n".encode("utf-8", "replace")
