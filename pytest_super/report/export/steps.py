"""The parts of a stored step that both formats of conversations have a place for, and the rest of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pytest_super.store.step_values import edit_of, json_object
from pytest_super.store.trajectory import MESSAGE, TOOL_CALL, Step

# These have a place of their own in both formats.
PLACED = ("action", "thought", "observation")
# The names of the argument, by the type of the action: those by which viewers know code and answers.
ARGUMENTS = {"execute": "code", "submit": "answer"}


def is_call(step: Step) -> bool:
    """Whether the step is the call of a tool, and not an answer of the model that only says something."""
    return step.action.type not in ("", MESSAGE)


def function_of(step: Step) -> tuple[str, dict[str, Any]]:
    """The action of a step as the name and the arguments of a tool call."""
    kind, content = step.action.type, step.action.content
    if kind == TOOL_CALL and (called := json_object(content)) and "name" in called:
        arguments = json_object(str(called.get("arguments")))
        return str(called["name"]), arguments or {"content": called.get("arguments")}
    edit = edit_of(content) if kind == "edit" else None
    return kind, edit or {ARGUMENTS.get(kind, "content"): content}


def rest_of(step: Step) -> dict[str, Any]:
    """All other fields of a step, among them the outputs of its cell as in a notebook."""
    rest = {name: value for name, value in asdict(step).items() if name not in PLACED}
    if not has_model_call(step):
        rest |= {"prompt_tokens": None, "completion_tokens": None}
    return rest


def has_model_call(step: Step) -> bool:
    """Whether tokens were counted in the step: a call of a model has at least those of its prompt."""
    return bool(step.prompt_tokens or step.completion_tokens)
