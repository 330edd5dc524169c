"""The highest prices of a model, from litellm's table or from the user."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# No count of tokens is higher.
HIGHEST_COUNT = 2**53
# Includes the price of writing to a cache, which can be higher than that of the prompt.
PROMPT_PRICE = re.compile(r"input_cost_per_\w*token|\w*cache_\w+_cost")
ANSWER_PRICE = re.compile(r"output_cost_per_\w*token")
# Prices per second, image or query, which a number of tokens does not bound.
OTHER_PRICE = re.compile(r"((in|out)put_)?cost_per_(?!\w*token)")
USER_PRICES = {"input_cost_per_token", "output_cost_per_token"}


@dataclass(frozen=True, kw_only=True)
class Prices:
    """The highest prices over all tiers of a model, in US dollars a token; infinite if unknown."""

    prompt: float
    answer: float
    longest_answer: float
    """The most tokens of one answer, whatever the request allows."""

    def max_cost(self, prompt_tokens: float, answer_tokens: float) -> float:
        return times(prompt_tokens, self.prompt) + times(answer_tokens, self.answer)


def prices_of(entry: Mapping[str, Any], parameters: Mapping[str, Any]) -> Prices:
    """Prices from litellm's entry for a model, or from the user's parameters if they state both prices."""
    source = parameters if parameters.keys() >= USER_PRICES else entry
    tiers = [source, *(source.get("tiered_pricing") or ())]
    has_others = any(amounts(tiers, OTHER_PRICE))
    # `max_tokens` is litellm's older name, and the only one in some entries.
    length: Any = entry.get("max_output_tokens") or entry.get("max_tokens")
    return Prices(
        prompt=inf if has_others else max(amounts(tiers, PROMPT_PRICE), default=inf),
        answer=inf if has_others else max(amounts(tiers, ANSWER_PRICE), default=inf),
        longest_answer=length if is_count(length) else inf,
    )


def entry_of(model: str, entries: Mapping[str, Any]) -> dict[str, Any]:
    """The entry for a model in litellm's table; empty if it has none."""
    provider, _, name = model.partition("/")
    entry: dict[str, Any] = entries.get(model) or entries.get(name) or {}
    # The beginning is enough: litellm divides one provider into `vertex_ai-language-models` and others.
    is_same = model in entries or str(entry.get("litellm_provider")).startswith(provider)
    return entry if is_same else {}


def amounts(tiers: Iterable[Mapping[str, Any]], name: re.Pattern[str]) -> list[float]:
    """The numbers in all tiers whose names match."""
    found = [value for tier in tiers for key, value in tier.items() if name.match(key)]
    return [float(value) for value in found if isinstance(value, int | float)]


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < HIGHEST_COUNT


def times(tokens: float, price: float) -> float:
    # Infinity times zero is not a number, but any number of free tokens is free.
    return tokens * price if price else 0.0
