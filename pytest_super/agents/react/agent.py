"""The agents `react` and `react-super` of the SUPER paper (section 4.1, appendix C.1)."""

from __future__ import annotations

import re
from dataclasses import replace

from pytest_super.agents.asking import ask, submit, task_text
from pytest_super.agents.clipped_history import history_text
from pytest_super.agents.prompts import read_prompt
from pytest_super.agents.react.format import ACTION_TYPES, FormatError, parse_edit, parse_response
from pytest_super.model.completion import Message
from pytest_super.store.trajectory import Action, Step
from pytest_super.trial.editing import edit_file
from pytest_super.trial.trial import Trial

# The paper's value. It ends an answer in which the model makes up an observation. The closing tag is not a
# stop text: an answer without it would look like one that was cut.
STOP = ["\nObservation:"]
SUBMISSION_HINT = "JSON has keys and texts in double quotes; null means that there is no answer."
# A part of the prompts' common file that only one of the two agents gets.
PART = re.compile(r"^<<(react|react-super)>>\n(.*?)^<<end>>\n", re.MULTILINE | re.DOTALL)


class ReActAgent:
    """Asks for one thought and one action at a time; with `edit` it is the paper's ReAct-SUPER."""

    def __init__(self, prompt: str | None = None, *, edit: bool) -> None:
        self.prompt = react_prompt(edit=edit) if prompt is None else prompt
        self.is_fenced = "Observation: ```" in self.prompt
        """Whether the prompt's demonstrations put observations in code fences, as the published ones do."""
        self.types = tuple(type for type in ACTION_TYPES if edit or type != "edit")

    def run(self, trial: Trial) -> None:
        while trial.stop_reason is None:
            completion = ask(trial, self.messages, stop=STOP)
            try:
                response = parse_response(completion.text, completion.finish_reason, self.types)
            except FormatError as error:
                trial.reject(str(error), thought=completion.text)
            else:
                act(trial, response.action, response.thought)

    def messages(self, trial: Trial) -> list[Message]:
        """The prompt. As in the paper, the last message is the assistant's and contains the whole history.

        It reads as an answer to be continued and has the form of the prompt's demonstrations. For a provider
        that requires a user message at the end, set the model argument ensure_alternating_roles.
        """
        messages: list[Message] = [
            {"role": "system", "content": self.prompt},
            {"role": "user", "content": f"Query: {task_text(trial.task)}"},
        ]
        if trial.history:
            history = history_text([as_shown(step) for step in trial.history], fenced=self.is_fenced)
            messages.append({"role": "assistant", "content": history})
        return messages


def react_prompt(*, edit: bool) -> str:
    """The prompt of `react-super`, or without `edit` that of `react`."""
    agent = "react-super" if edit else "react"
    return PART.sub(lambda part: part[2] if part[1] == agent else "", read_prompt("react"))


def act(trial: Trial, action: Action, thought: str) -> Step:
    """Do an action of one of ACTION_TYPES; malformed content is rejected."""
    match action.type:
        case "execute":
            return trial.execute(action.content, thought)
        case "edit":
            return edit(trial, action, thought)
        case "submit":
            return submit(trial, action, thought, text=action.content, hint=SUBMISSION_HINT)
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
        action, lambda files: edit_file(files, change.path, change.before, change.after), thought
    )


def as_shown(step: Step) -> Step:
    """The step as the history shows it. As in the paper, an answer without an action has no text there."""
    if step.origin == "agent" and not step.action.type:
        return replace(step, thought="")
    return step
