"""What an answer used: the tokens that a provider states, if they are plausible, and their price."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_super.model.completion import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_super.model.protocols.protocol import Body, Tokens

# A hundred times the longest window of any model. A single higher figure would spend every limit of a run.
MOST_TOKENS = 10**9
# The figures from which litellm computes a cost.
COUNT = re.compile(r"\w+_(tokens|requests)")
PRICE = re.compile(r"\w*_cost(_per_\w+)?|\w*cost_per_\w+")


def stated_tokens(body: dict[str, Any]) -> tuple[int, int] | None:
    """The tokens of prompt and answer as the provider states them; None if that is missing or implausible."""
    if not is_plausible(body):
        return None
    usage = body["usage"]
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not isinstance(prompt, int) or not isinstance(completion, int):
        return None
    return (prompt, completion) if prompt else None


def counts_in(usage: dict[str, Any]) -> list[float]:
    """The counts of tokens and of requests, those of its details included."""
    parts = [usage, *(part for part in usage.values() if isinstance(part, dict))]
    fields = [field for part in parts for field in part.items()]
    return [value for name, value in fields if COUNT.fullmatch(name) and isinstance(value, int | float)]


def is_plausible(body: Body) -> bool:
    usage = body.get("usage")
    return isinstance(usage, dict) and all(0 <= figure <= MOST_TOKENS for figure in counts_in(usage))


def plausible_count(count: int) -> int:
    """A number of tokens; 0 if it is more than any answer uses."""
    return count if count <= MOST_TOKENS else 0


def prices_in(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The user's prices."""
    return {name: value for name, value in parameters.items() if PRICE.fullmatch(name)}


def register_prices(litellm: Any, model: str, parameters: Mapping[str, Any]) -> None:
    """Make litellm compute by the user's prices."""
    if prices := prices_in(parameters):
        provider = model.partition("/")[0]
        litellm.register_model({model: {**prices, "litellm_provider": provider, "mode": "chat"}})


def cost_of(litellm: Any, model: str, request: Mapping[str, Any], response: Any) -> float | None:
    """litellm's own sum for a response, in US dollars; None if it does not know the price.

    It includes every discount and tier, and goes by the model that the response names: a deployment of Azure
    has any name. `request` has the user's parameters, too. litellm does the same for a whole answer.
    """
    try:
        return float(
            litellm.completion_cost(
                response,
                model=model,
                custom_llm_provider=model.partition("/")[0],
                base_model=request.get("base_model"),
                custom_pricing=bool(prices_in(request)),
                optional_params={"service_tier": request.get("service_tier")},
            )
        )
    except Exception:
        # It raises a plain Exception for a model whose price it does not know.
        return None


def priced(litellm: Any, model: str, tokens: Tokens) -> Usage:
    """The usage, with its cost in US dollars if litellm or the user knows the model's prices."""
    try:
        cost: float | None = float(
            sum(
                litellm.cost_per_token(
                    model,
                    prompt_tokens=tokens.prompt,
                    completion_tokens=tokens.completion,
                    cache_read_input_tokens=tokens.cached,
                    cache_creation_input_tokens=tokens.cache_writes,
                )
            )
        )
    except Exception:
        # It raises a plain Exception for a model whose price it does not know.
        cost = None
    return Usage(
        prompt_tokens=tokens.prompt,
        completion_tokens=tokens.completion,
        cached_tokens=tokens.cached,
        cost_usd=cost,
    )
