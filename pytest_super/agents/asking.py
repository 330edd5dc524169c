"""Asks the model for the next action of SUPER's agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.model.completion import FilteredError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_super.model.completion import Completion, Message
    from pytest_super.trial.trial import Trial

FILTERED = "The model's provider refused to read on, so nothing was done."


def ask(trial: Trial, messages: Callable[[Trial], list[Message]], decoding: Mapping[str, Any]) -> Completion:
    """The model's answer. Raises FilteredError when the provider's filter refuses two prompts in a row."""
    try:
        return trial.complete(messages(trial), **decoding)
    except FilteredError:
        # Mostly the last observation is at fault. The rejection makes it an earlier one, which is clipped.
        trial.reject(FILTERED)
        return trial.complete(messages(trial), **decoding)
