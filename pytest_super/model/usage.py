"""What an answer used: the tokens that a provider states, if they are plausible, and the user's prices."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_super.model.protocols.protocol import Tokens

# A hundred times the longest window of any model. A single higher figure would spend every limit of a run.
MOST_TOKENS = 10**9
# The figures from which litellm computes a cost.
COUNT = re.compile(r"\w+(_tokens|_requests|TokenCount)")
PRICE = re.compile(r"\w*_cost(_per_\w+)?|\w*cost_per_\w+")


def openai_usage(tokens: Tokens) -> dict[str, Any]:
    """What an answer used, in the form of chat completions."""
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.completion,
        "total_tokens": tokens.prompt + tokens.completion,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
        # By these litellm computes the price of a cache.
        "cache_read_input_tokens": tokens.cached,
        "cache_creation_input_tokens": tokens.cache_writes,
    }


def counts_in(usage: dict[str, Any]) -> list[float]:
    """The counts of tokens and of requests, those of its details included."""
    parts = [usage, *(part for part in usage.values() if isinstance(part, dict))]
    fields = [field for part in parts for field in part.items()]
    return [value for name, value in fields if COUNT.fullmatch(name) and isinstance(value, int | float)]


def is_plausible(usage: Any) -> bool:
    return isinstance(usage, dict) and all(0 <= figure <= MOST_TOKENS for figure in counts_in(usage))


def plausible_count(count: int) -> int:
    """A number of tokens; 0 if it is more than any answer uses."""
    return count if count <= MOST_TOKENS else 0


def prices_in(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The user's prices."""
    return {name: value for name, value in parameters.items() if PRICE.fullmatch(name)}
