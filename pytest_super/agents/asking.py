"""What SUPER's agents ask the model: the task in their prompts, the next answer, and the submission in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pytest_super.model.completion import Completion, FilteredError, Message
from pytest_super.store.trajectory import Action, Step
from pytest_super.tasks.public_task import PublicTask
from pytest_super.trial.trial import Trial

# The temperature of the paper and the limit of the published code.
DECODING: dict[str, Any] = {"temperature": 0.2, "max_tokens": 1500}
# Finish reasons of answers that the provider cut: their action can be incomplete.
CUT = ("length", "content_filter")
CUT_OFF = "The answer was cut off at its end, so nothing was done: write a shorter one."
FILTERED = "The model's provider refused the last prompt, so nothing was done."
# The type in the published trajectories. Only a `submit` is scored.
INVALID = "submit_invalid_json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """A parsed answer of the model."""

    thought: str
    action: Action


def ask(trial: Trial, messages: Callable[[Trial], list[Message]], **parameters: Any) -> Completion:
    """The model's answer. Raises FilteredError when the provider's filter refuses two prompts in a row."""
    try:
        return trial.complete(messages(trial), **DECODING, **parameters)
    except FilteredError:
        # Usually the last observation is the cause. The rejected step makes it an earlier one: it is clipped.
        trial.reject(FILTERED)
        return trial.complete(messages(trial), **DECODING, **parameters)


def submit(trial: Trial, action: Action, thought: str, *, text: str, hint: str) -> Step:
    """Submit the value of `text`, the JSON in the action. Text that is not JSON is rejected with `hint`."""
    try:
        answer = parse_submission(text)
    except ValueError as error:
        return trial.reject(f"{error}\n{hint}", Action(type=INVALID, content=action.content), thought)
    return trial.submit(answer, thought)


def parse_submission(text: str) -> Any:
    """Raises ValueError with a message for the model."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else error
    raise ValueError(f"The submission is not JSON, so it was not submitted: {why}.")


def task_text(task: PublicTask) -> str:
    """The query, followed by lines that say where the code is, without facts that the query contains."""
    lines = [line for line, fact in repository_facts(task) if fact not in task.query]
    return "\n".join([task.query, *lines])


def repository_facts(task: PublicTask) -> list[tuple[str, str]]:
    """Lines, each with the text by which a query can already state its fact."""
    if task.folder is not None:
        return [(f"Repository: the folder {task.folder} in the working directory", task.folder)]
    match task.repository:
        case {"git": url, "commit": commit}:
            return [(f"Git repository: {url}", url), (f"Commit: {commit}", commit)]
        case {"pypi": project, "version": version}:
            return [(f"Source distribution: {project} {version} from the package index", project)]
    return []
