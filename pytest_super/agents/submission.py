"""Submits the answers of SUPER's agents, which models write as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_super.store.trajectory import Action

if TYPE_CHECKING:
    from pytest_super.store.trajectory import Step
    from pytest_super.trial.trial import Trial

# The type in the published trajectories. Only a `submit` is scored.
INVALID = "submit_invalid_json"


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
