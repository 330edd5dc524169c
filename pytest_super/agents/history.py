"""The history of a trial as SUPER's agents put it into a prompt (section 4.1 and appendix C of the paper)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_super.agents.clipping import EARLIER, LAST, LAST_MARK, clipped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_super.store.trajectory import Action, Step

PRE_EXECUTED_THOUGHT = "[pre-executed by user]"


def history_text(
    steps: Sequence[Step], *, last: int = LAST, earlier: int = EARLIER, fenced: bool = False
) -> str:
    """The steps as the paper's prompt writes them, each followed by a blank line; "" when there are none.

    Observations are clipped to their last `earlier` characters, the newest one to its last `last`; nothing
    else is clipped. `fenced` puts them between lines of back-ticks, as the published prompts do.
    """
    if not steps:
        return ""
    texts = [step_text(step, clipped(step.observation, earlier), fenced) for step in steps[:-1]]
    return "".join(texts) + step_text(steps[-1], clipped(steps[-1].observation, last, LAST_MARK), fenced)


def step_text(step: Step, observation: str, fenced: bool = False) -> str:
    thought = PRE_EXECUTED_THOUGHT if step.origin == "pre_execute" else step.thought
    seen = f" ```\n{observation}\n```" if fenced else f"\n{observation}"
    content = content_text(step.action)
    return (
        f"Thought: {thought}\nAction: {step.action.type}\n<content>\n{content}\n</content>\n"
        f"Observation:{seen}\n\n"
    )


def content_text(action: Action) -> str:
    """The content as a model writes it: the three parts of an edit instead of the JSON that a step stores."""
    if action.type != "edit":
        return action.content
    try:
        edit = json.loads(action.content)
    except (ValueError, RecursionError):
        return action.content
    if not isinstance(edit, dict) or edit.keys() != {"path", "before", "after"}:
        return action.content
    return "{path}\n<<<BEFORE_EDIT>>>\n{before}\n<<<AFTER_EDIT>>>\n{after}".format(**edit)
