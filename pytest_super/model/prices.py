"""What a model costs, by litellm's table of prices and by the user's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Any

from pytest_super.json_values import object_in, parts_in

# The file that litellm reads when it must not download a newer one.
TABLE = "model_prices_and_context_window_backup.json"
# Includes the price of writing to a cache, which can be higher than that of the prompt.
PROMPT_PRICE = re.compile(r"input_cost_per_\w*token|\w*cache_\w+_cost")
ANSWER_PRICE = re.compile(r"output_cost_per_\w*token")
# Prices per second, image or query, which a number of tokens does not bound.
OTHER_PRICE = re.compile(r"((in|out)put_)?cost_per_(?!\w*token)")
# The user's prices, as litellm calls them.
PRICE = re.compile(r"\w*_cost(_per_\w+)?|\w*cost_per_\w+")
USER_PRICES = {"input_cost_per_token", "output_cost_per_token"}
# Above the shortest of prompts that have a price of their own.
LONG_PROMPT = 100_000
LONG_PRICE = re.compile(r"\w+_above_\d+k_tokens")
# No count of tokens is higher.
HIGHEST_COUNT = 2**53
# Prices by the length of a prompt or by the hour: litellm knows when they hold.
CONDITIONAL = {"tiered_pricing", "off_peak_pricing"}


@dataclass(frozen=True, kw_only=True)
class Prices:
    """The highest prices over all tiers of a model, in US dollars a token; infinite if unknown."""

    prompt: float
    answer: float
    longest_answer: float
    """The most tokens of one answer, whatever the request allows."""


def prices_in(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The user's prices."""
    return {name: value for name, value in parameters.items() if PRICE.fullmatch(name)}


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


@cache
def price_table() -> dict[str, Any]:
    """litellm's, by the names of models, without importing litellm. Empty if it is not where it was."""
    found = find_spec("litellm")
    try:
        folders = (found and found.submodule_search_locations) or []
        table: dict[str, Any] = json.loads((Path(folders[0]) / TABLE).read_bytes())
    except (OSError, ValueError, IndexError):
        return {}
    return table


def plain_cost(entry: Mapping[str, Any], usage: Mapping[str, Any]) -> float | None:
    """What an answer costs in US dollars, by the four prices that most models have.

    None if that does not decide it: the entry has other prices that can hold, or `usage`, which is OpenAI's,
    counts something else.
    """
    counts = counts_in(usage)
    prompt, answer = counts.pop("prompt_tokens", 0), counts.pop("completion_tokens", 0)
    counts.pop("total_tokens", None)
    # Some servers state it twice.
    read = max(counts.pop("cached_tokens", 0), counts.pop("cache_read_input_tokens", 0))
    written = counts.pop("cache_creation_input_tokens", 0)
    for_an_hour = counts.pop("ephemeral_1h_input_tokens", 0)
    counts.pop("ephemeral_5m_input_tokens", None)
    has_own_price = counts.pop("reasoning_tokens", 0) and "output_cost_per_reasoning_token" in entry
    is_long = prompt > LONG_PROMPT and any(map(LONG_PRICE.match, entry))
    if counts or has_own_price or is_long or CONDITIONAL & entry.keys():
        return None
    parts = {
        # Anthropic's price of what is kept for an hour. Old tables of litellm lack it.
        "input_cost_per_token": prompt - read - written + 2 * for_an_hour,
        "cache_read_input_token_cost": read,
        "cache_creation_input_token_cost": written - for_an_hour,
        "output_cost_per_token": answer,
    }
    priced = [(entry.get(name), tokens) for name, tokens in parts.items() if tokens]
    if not all(isinstance(price, int | float) and tokens > 0 for price, tokens in priced):
        return None
    return float(sum(price * tokens for price, tokens in priced))


def counts_in(usage: Mapping[str, Any]) -> dict[str, Any]:
    """All that is stated and not zero, without the groups."""
    stated = [field for part in parts_in(usage) for field in part.items()]
    return {name: value for name, value in stated if value and not isinstance(value, dict)}


def stated_cost(usage: Mapping[str, Any]) -> float | None:
    """What OpenRouter says that an answer costs, in US dollars; None if it does not say.

    Source: https://openrouter.ai/docs/use-cases/usage-accounting
    """
    parts: list[Any] = [usage.get("cost")]
    if usage.get("is_byok") is True:
        # The provider charges the user's own key, and OpenRouter a fee.
        parts.append(object_in(usage, "cost_details").get("upstream_inference_cost"))
    is_stated = all(isinstance(part, int | float) and 0 <= part < HIGHEST_COUNT for part in parts)
    return float(sum(parts)) if is_stated else None


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < HIGHEST_COUNT
