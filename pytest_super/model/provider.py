"""The interface behind the gateway's calls: litellm and scripts implement it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_super.model.settings import SCRIPTED

if TYPE_CHECKING:
    from pytest_super.model.answer import Answer, Request
    from pytest_super.model.settings import ModelSettings
    from pytest_super.model.token_estimate import MaxUsage


class ModelProvider(Protocol):
    @property
    def takes_seed(self) -> bool:
        """Whether a request's `seed` makes a difference."""
        ...

    def max_usage(self, request: Request) -> MaxUsage:
        """The most that one call with this request can use."""
        ...

    async def complete(self, request: Request, *, task: str, call: int) -> Answer:
        """One call, without a retry; `call` is its number within its trial, from 1.

        Raises ModelCallError.
        """
        ...


def make_provider(settings: ModelSettings) -> ModelProvider:
    """Raises SuperError if a script is wrong."""
    # Imported here: a scripted run must not wait for litellm, whose import takes seconds.
    if settings.name.startswith(SCRIPTED):
        from pytest_super.model.scripted import ScriptedProvider

        return ScriptedProvider(Path(settings.name.removeprefix(SCRIPTED)))
    from pytest_super.model.litellm_provider import LitellmProvider

    return LitellmProvider(settings.name, settings.parameters)
