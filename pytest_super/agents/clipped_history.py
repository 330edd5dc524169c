"""What the agent is shown of its steps: clips their output, and renders them for prompts of SUPER's agents.

Section 4.1 and appendix C of the paper.
"""

from collections.abc import Sequence

from pytest_super.agents.asking import INVALID
from pytest_super.agents.react.format import AFTER, BEFORE, render_response
from pytest_super.store.step_values import edit_of
from pytest_super.store.trajectory import Action, Step

PRE_EXECUTED_THOUGHT = "[pre-executed by user]"
# Characters kept from the end of the newest observation and of each earlier one.
LAST = 50_000
EARLIER = 500
# The marks of a clipped beginning in the published prompts.
LAST_MARK = "... (truncated) ..."
EARLIER_MARK = "(truncated) ... "


def history_text(steps: Sequence[Step], *, fenced: bool = False) -> str:
    """The steps in the form of the paper's prompt; "" for no steps. Only observations are clipped.

    `fenced` is the published form: observations are in code fences. Otherwise a blank line follows each step,
    as in the demonstrations of our prompts.
    """
    shown = zip(steps, clipped_observations(steps), strict=True)
    return "".join(step_text(step, observation, fenced) for step, observation in shown)


def step_text(step: Step, observation: str, fenced: bool) -> str:
    thought = step.thought or (PRE_EXECUTED_THOUGHT if step.origin == "pre_execute" else "")
    # Our prompts do not name the type that the published code gave a submission that is not JSON.
    type = "submit" if step.action.type == INVALID and not fenced else step.action.type
    answer = render_response(thought, Action(type=type, content=content_text(step.action)))
    shown = f" ```\n{observation}\n```" if fenced else f"\n{observation}\n"
    return f"{answer}\nObservation:{shown}\n"


def content_text(action: Action) -> str:
    """The content as a model writes it: an edit in its three parts, which a step stores as JSON.

    `parse_edit` reads whole lines from it, so it is the same edit if the stored one replaces whole lines. As
    in the published prefixes, the last line is ended, too.
    """
    edit = edit_of(action.content) if action.type == "edit" else None
    if edit is None:
        return action.content
    before, after = as_lines(edit["before"]), as_lines(edit["after"])
    return f"{edit['path']}\n{BEFORE}\n{before}{AFTER}\n{after}"


def as_lines(text: str) -> str:
    return text if text.endswith("\n") or not text else f"{text}\n"


def clipped_observations(steps: Sequence[Step]) -> list[str]:
    """The observation of each step. The newest one is shown at length."""
    earlier = [clipped(step.observation, EARLIER, EARLIER_MARK) for step in steps[:-1]]
    return earlier + [clipped(step.observation, LAST, LAST_MARK) for step in steps[-1:]]


def clipped(observation: str, limit: int, mark: str) -> str:
    """The observation, or `mark` and its last `limit` characters when it is longer."""
    surplus = len(observation) - limit
    return mark + observation[surplus:] if surplus > 0 else observation
