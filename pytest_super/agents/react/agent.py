"""The agents `react` and `react-super` of the SUPER paper (section 4.1, appendix C.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_super.agents.asking import ask
from pytest_super.agents.history import history_text
from pytest_super.agents.prompts import read_prompt
from pytest_super.agents.react.format import (
    ACTION_TYPES,
    FormatError,
    parse_edit,
    parse_response,
    parse_submission,
)
from pytest_super.store.trajectory import Action
from pytest_super.trial.editing import edit_file

if TYPE_CHECKING:
    from pytest_super.model.completion import Message
    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.public_task import PublicTask
    from pytest_super.trial.trial import Trial

# The paper's values. The stop text ends an answer in which the model makes up an observation itself. The
# closing tag is not a stop text: an answer without it would look like one that was cut.
DECODING = {"temperature": 0.2, "max_tokens": 1500, "stop": ["\nObservation:"]}

# The type in the published trajectories. Only a `submit` is scored.
INVALID_SUBMISSION = "submit_invalid_json"


class ReActAgent:
    """Asks the model for one thought and one action at a time; with `edit` it is the paper's ReAct-SUPER.

    `prompt` replaces the whole system prompt.
    """

    def __init__(self, prompt: str | None = None, *, edit: bool) -> None:
        self.prompt = read_prompt("react-super" if edit else "react") if prompt is None else prompt
        self.is_fenced = "Observation: ```" in self.prompt
        """Whether the prompt's demonstrations put observations in code fences, as the published ones do."""
        self.types = tuple(type for type in ACTION_TYPES if edit or type != "edit")

    def run(self, trial: Trial) -> None:
        while trial.stop_reason is None:
            completion = ask(trial, self.messages, DECODING)
            try:
                response = parse_response(completion.text, completion.finish_reason, self.types)
            except FormatError as error:
                trial.reject(str(error), thought=completion.text)
            else:
                act(trial, response.action, response.thought)

    def messages(self, trial: Trial) -> list[Message]:
        """The prompt. As in the paper, the last message is the assistant's and holds the whole history.

        It reads as an answer to be continued and has the form of the prompt's demonstrations. For a provider
        that requires a user message at the end, set the model argument ensure_alternating_roles.
        """
        messages: list[Message] = [
            {"role": "system", "content": self.prompt},
            {"role": "user", "content": question(trial.task)},
        ]
        if trial.history:
            history = history_text([as_shown(step) for step in trial.history], fenced=self.is_fenced)
            messages.append({"role": "assistant", "content": history})
        return messages


def question(task: PublicTask) -> str:
    """The query, followed by the repository's facts that the query does not mention."""
    return "\n".join([f"Query: {task.query}", *repository_lines(task)])


def repository_lines(task: PublicTask) -> list[str]:
    """Lines that say where the code is, without facts that the query contains."""
    return [line for line, fact in repository_facts(task) if fact not in task.query]


def repository_facts(task: PublicTask) -> list[tuple[str, str]]:
    """Lines, each with its fact: the text that a query can contain already."""
    if task.folder is not None:
        return [(f"Repository: the folder {task.folder} in the working directory", task.folder)]
    match task.repository:
        case {"git": url, "commit": commit}:
            return [(f"Git repository: {url}", url), (f"Commit: {commit}", commit)]
        case {"pypi": project, "version": version}:
            return [(f"Source distribution: {project} {version} of the package index", project)]
    return []


def act(trial: Trial, action: Action, thought: str) -> Step:
    """Do an action of one of ACTION_TYPES; malformed content is rejected."""
    match action.type:
        case "execute":
            return trial.execute(action.content, thought)
        case "edit":
            return edit(trial, action, thought)
        case "submit":
            return submit(trial, action.content, thought)
        case "continue_wait":
            return trial.continue_wait(thought)
        case "interrupt":
            return trial.interrupt(thought)
    raise ValueError(f"not an action: {action.type}")


def edit(trial: Trial, action: Action, thought: str) -> Step:
    """Edit a file. The step stores the model's own text, because the model reads it again in the history."""
    try:
        change = parse_edit(action.content)
    except FormatError as error:
        return trial.reject(str(error), action, thought)
    return trial.use(
        action, lambda kernel: edit_file(kernel, change.path, change.before, change.after), thought
    )


def submit(trial: Trial, content: str, thought: str) -> Step:
    try:
        answer = parse_submission(content)
    except FormatError as error:
        return trial.reject(str(error), Action(type=INVALID_SUBMISSION, content=content), thought)
    return trial.submit(answer, thought)


def as_shown(step: Step) -> Step:
    """The step as the history shows it: as in the paper, without the text of an answer without an action."""
    if step.origin == "agent" and not step.action.type:
        return replace(step, thought="")
    if step.action.type == INVALID_SUBMISSION:
        return replace(step, action=replace(step.action, type="submit"))
    return step
