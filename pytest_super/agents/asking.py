"""Asks the model for the next answer of SUPER's agents: a thought and one action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_super.model.completion import FilteredError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_super.model.completion import Completion, Message
    from pytest_super.store.trajectory import Action
    from pytest_super.trial.trial import Trial

# The paper's values.
DECODING: dict[str, Any] = {"temperature": 0.2, "max_tokens": 1500}
# Finish reasons of answers that the provider cut: their action can be incomplete.
CUT = ("length", "content_filter")
CUT_OFF = "The answer was cut off at its end, so nothing was done: write a shorter one."
FILTERED = "The model's provider refused the last prompt, so nothing was done."


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
