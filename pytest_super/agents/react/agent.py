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

# Of the paper; a model that goes on after its action makes up the observation, which ends the answer here.
# The closing tag is no such end: an answer without it could not be told from one that was cut.
DECODING = {"temperature": 0.2, "max_tokens": 1500, "stop": ["\nObservation:"]}

# As the published trajectories have it: the score of a trial is that of its `submit`.
INVALID_SUBMISSION = "submit_invalid_json"


class ReActAgent:
    """Asks for one thought and one action at a time; with `edit` it is the paper's ReAct-SUPER.

    `prompt` stands in place of the whole system prompt.
    """

    def __init__(self, prompt: str | None = None, *, edit: bool) -> None:
        self.prompt = read_prompt("react-super" if edit else "react") if prompt is None else prompt
        self.is_fenced = "Observation: ```" in self.prompt
        """Whether the demonstrations have observations in fences, as the published prompts do."""
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
        """As in the paper: all that was done until now is one message, of the assistant, and the last.

        It reads as an answer to be continued, and the demonstrations of the prompt have its form. A provider
        that wants a message of the user at the end gets one by the model argument ensure_alternating_roles.
        """
        messages: list[Message] = [
            {"role": "system", "content": self.prompt},
            {"role": "user", "content": question(trial.task)},
        ]
        if trial.history:
            history = history_text([as_answered(step) for step in trial.history], fenced=self.is_fenced)
            messages.append({"role": "assistant", "content": history})
        return messages


def question(task: PublicTask) -> str:
    """The query, and of the repository what the query leaves out."""
    return "\n".join([f"Query: {task.query}", *repository_lines(task)])


def repository_lines(task: PublicTask) -> list[str]:
    """What tells where the code is and is not in the query."""
    return [line for line, fact in repository_facts(task) if fact not in task.query]


def repository_facts(task: PublicTask) -> list[tuple[str, str]]:
    """Lines, each with the part of it that a query may tell itself."""
    if task.folder is not None:
        return [(f"Repository: the folder {task.folder} in the working directory", task.folder)]
    match task.repository:
        case {"git": url, "commit": commit}:
            return [(f"Git repository: {url}", url), (f"Commit: {commit}", commit)]
        case {"pypi": project, "version": version}:
            return [(f"Source distribution: {project} {version} of the package index", project)]
    return []


def act(trial: Trial, action: Action, thought: str) -> Step:
    """Do an action of any of ACTION_TYPES; one whose content is not in its form is rejected."""
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
    """A step whose content is what the model wrote, since it reads it again in the history."""
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


def as_answered(step: Step) -> Step:
    """The step as the model reads it again: as in the paper, nothing of an answer that was no action."""
    if step.origin == "agent" and not step.action.type:
        return replace(step, thought="")
    if step.action.type == INVALID_SUBMISSION:
        return replace(step, action=replace(step.action, type="submit"))
    return step
