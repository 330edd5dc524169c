"""Asks the model for the next action of SUPER's agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.model.completion import FilteredError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_super.model.completion import Completion, Message
    from pytest_super.trial.trial import Trial

# The paper's values.
DECODING: dict[str, Any] = {"temperature": 0.2, "max_tokens": 1500}
FILTERED = "The model's provider refused the last prompt, so nothing was done."


def ask(trial: Trial, messages: Callable[[Trial], list[Message]], **parameters: Any) -> Completion:
    """The model's answer. Raises FilteredError when the provider's filter refuses two prompts in a row."""
    try:
        return trial.complete(messages(trial), **DECODING, **parameters)
    except FilteredError:
        # Usually the last observation is the cause. The rejected step makes it an earlier one: it is clipped.
        trial.reject(FILTERED)
        return trial.complete(messages(trial), **DECODING, **parameters)
