"""Renders a trial's history for the prompts of SUPER's agents (section 4.1 and appendix C of the paper)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_super.agents.clipping import clipped_observations
from pytest_super.agents.react.format import AFTER, BEFORE, render_response
from pytest_super.store.step_values import edit_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_super.store.trajectory import Action, Step

PRE_EXECUTED_THOUGHT = "[pre-executed by user]"


def history_text(steps: Sequence[Step], *, fenced: bool = False) -> str:
    """The steps in the form of the paper's prompt, each followed by a blank line; "" for no steps.

    Only observations are clipped. `fenced` puts them in code fences, as the published prompts do.
    """
    shown = zip(steps, clipped_observations(steps), strict=True)
    return "".join(step_text(step, observation, fenced) for step, observation in shown)


def step_text(step: Step, observation: str, fenced: bool) -> str:
    thought = PRE_EXECUTED_THOUGHT if step.origin == "pre_execute" else step.thought
    answer = render_response(thought, replace(step.action, content=content_text(step.action)))
    shown = f" ```\n{observation}\n```" if fenced else f"\n{observation}"
    return f"{answer}\nObservation:{shown}\n\n"


def content_text(action: Action) -> str:
    """The content as a model writes it: an edit in its three parts, which a step stores as JSON."""
    edit = edit_of(action.content) if action.type == "edit" else None
    if edit is None:
        return action.content
    return f"{edit['path']}\n{BEFORE}\n{edit['before']}\n{AFTER}\n{edit['after']}"
