"""AutoExperiment's agentless mode: one generation for each missing function, then the commands once.

The published code (arXiv 2506.19724) writes only the first of several missing functions; this writes each.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_super.agents.agentless.answer import last_block, with_answer
from pytest_super.agents.agentless.retrieval import context_of
from pytest_super.agents.gold import run_to_end
from pytest_super.agents.prompts import read_prompt
from pytest_super.functions.source import SourceError
from pytest_super.json_values import loaded
from pytest_super.kernel.cell import SandboxLostError
from pytest_super.model.completion import FilteredError
from pytest_super.trial.trial import Trial
from pytest_super.words import clipped

if TYPE_CHECKING:
    from pytest_super.option_types import Retrieval
    from pytest_super.tasks.public_task import MissingFunction, PublicExperiment

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
        if any(one.reported for one in trial.task.experiments):
            trial.submit(self._report(trial, outputs))
        else:
            trial.submit(None)

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
        answer = self._ask(trial, "\n\n".join([trial.task.query, printed, REPORT]))
        text = last_block(answer)
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
