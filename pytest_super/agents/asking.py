"""How the paper's agents ask their model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.model.completion import FilteredError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_super.model.completion import Completion, Message
    from pytest_super.trial.trial import Trial

FILTERED = "The model's provider refused to read on, so nothing was done."


def ask(trial: Trial, messages: Callable[[Trial], list[Message]], decoding: Mapping[str, Any]) -> Completion:
    """The model's answer. Raises FilteredError when it is refused twice, with other words in between."""
    try:
        return trial.complete(messages(trial), **decoding)
    except FilteredError:
        # What was refused is mostly the last observation, of which only the end is shown from now on.
        trial.reject(FILTERED)
        return trial.complete(messages(trial), **decoding)
