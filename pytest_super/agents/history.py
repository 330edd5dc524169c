"""What SUPER's agents show a model of a trial so far (section 4.1 and appendix C of the paper)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_super.store.trajectory import Action, Step

# Characters of observations, from their ends: of the last step and of those before it.
LAST = 50_000
EARLIER = 500
# What stands for the rest of an observation, as published.
LAST_MARK = "... (truncated) ..."
EARLIER_MARK = "(truncated) ... "
PRE_EXECUTED_THOUGHT = "[pre-executed by user]"


def history_text(
    steps: Sequence[Step], *, last: int = LAST, earlier: int = EARLIER, fenced: bool = False
) -> str:
    """The steps as the paper's prompt writes them, a blank line after each; "" for none.

    Observations are cut to their last `earlier` characters, that of the last step to its last `last`;
    nothing else is cut. `fenced` puts them between lines of back-ticks as the published prompts do.
    """
    if not steps:
        return ""
    texts = [step_text(step, shown(step.observation, earlier), fenced) for step in steps[:-1]]
    return "".join(texts) + step_text(steps[-1], shown(steps[-1].observation, last, LAST_MARK), fenced)


def shown(observation: str, limit: int, mark: str = EARLIER_MARK) -> str:
    """The observation, or `mark` and its last `limit` characters where it has more."""
    surplus = len(observation) - limit
    return mark + observation[surplus:] if surplus > 0 else observation


def step_text(step: Step, observation: str, fenced: bool = False) -> str:
    thought = PRE_EXECUTED_THOUGHT if step.origin == "pre_execute" else step.thought
    seen = f" ```\n{observation}\n```" if fenced else f"\n{observation}"
    content = content_text(step.action)
    return (
        f"Thought: {thought}\nAction: {step.action.type}\n<content>\n{content}\n</content>\n"
        f"Observation:{seen}\n\n"
    )


def content_text(action: Action) -> str:
    """The content as a model writes it: of an edit its three parts, not the JSON that a step stores."""
    if action.type != "edit":
        return action.content
    try:
        edit = json.loads(action.content)
    except (ValueError, RecursionError):
        return action.content
    if not isinstance(edit, dict) or edit.keys() != {"path", "before", "after"}:
        return action.content
    return "{path}\n<<<BEFORE_EDIT>>>\n{before}\n<<<AFTER_EDIT>>>\n{after}".format(**edit)
