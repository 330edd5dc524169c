"""The parts of a stored step that both formats of conversations have a place for, and the rest of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pytest_super.store.step_values import edit_of

if TYPE_CHECKING:
    from pytest_super.store.trajectory import Step

# These have a place of their own in both formats.
PLACED = ("action", "thought", "observation")
# The names of the argument, by the type of the action: those by which viewers know code and answers.
ARGUMENTS = {"execute": "code", "submit": "answer"}


def arguments_of(step: Step) -> dict[str, str]:
    """The arguments of a step's action, as those of a tool call."""
    edit = edit_of(step.action.content) if step.action.type == "edit" else None
    return edit or {ARGUMENTS.get(step.action.type, "content"): step.action.content}


def rest_of(step: Step) -> dict[str, Any]:
    """All other fields of a step, among them the outputs of its cell as in a notebook."""
    rest = {name: value for name, value in asdict(step).items() if name not in PLACED}
    if not has_model_call(step):
        rest |= {"prompt_tokens": None, "completion_tokens": None}
    return rest


def has_model_call(step: Step) -> bool:
    """Whether tokens were counted in the step: a call of a model has at least those of its prompt."""
    return bool(step.prompt_tokens or step.completion_tokens)
