"""What a call can use before it is made, and what it costs by litellm's table of prices and by the user's."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil, inf
from typing import Any

from pytest_super.json_values import texts
from pytest_super.model.protocols.protocol import Request, is_count

# Includes the price of writing to a cache, which can be higher than that of the prompt.
PROMPT_PRICE = re.compile(r"input_cost_per_\w*token|\w*cache_\w+_cost")
ANSWER_PRICE = re.compile(r"output_cost_per_\w*token")
# Prices per second, image or query, which a number of tokens does not bound.
OTHER_PRICE = re.compile(r"((in|out)put_)?cost_per_(?!\w*token)")
# The user's prices, as litellm calls them.
PRICE = re.compile(r"\w*_cost(_per_\w+)?|\w*cost_per_\w+")
USER_PRICES = {"input_cost_per_token", "output_cost_per_token"}


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


def amounts(tiers: Iterable[Mapping[str, Any]], name: re.Pattern[str]) -> list[float]:
    """The numbers in all tiers whose names match."""
    found = [value for tier in tiers for key, value in tier.items() if name.match(key)]
    return [float(value) for value in found if isinstance(value, int | float)]


# Average of English text and code; used only where nothing better is known.
CHARACTERS_PER_TOKEN = 4
# Fields next to the messages that providers write into the prompt.
DESCRIBING = ("tools", "functions", "response_format", "tool_choice", "function_call", "prediction")
LENGTHS = ("max_tokens", "max_completion_tokens")
# Tokens that templates and providers add to a prompt; Anthropic's instructions for tools are 800 tokens.
OVERHEAD = 1000
MESSAGE_OVERHEAD = 16
# The most that any provider is known to count: gpt-4o-mini takes 2,833 and 8 tiles of 5,667.
IMAGE_TOKENS = 50_000


@dataclass(frozen=True, kw_only=True)
class MaxUsage:
    """The most that one call can use; infinite if that cannot be known."""

    prompt_tokens: float
    cost_usd: float


UNBOUNDED = MaxUsage(prompt_tokens=inf, cost_usd=inf)


def max_usage(request: Request, prices: Prices) -> MaxUsage:
    prompt = most_prompt_tokens(request)
    answer = most_answer_tokens(request, prices.longest_answer)
    cost = times(prompt, prices.prompt) + times(answer, prices.answer)
    return MaxUsage(prompt_tokens=prompt, cost_usd=cost)


def most_prompt_tokens(request: Request) -> float:
    """An upper bound: one token a byte of text or sound, and a constant for each image."""
    messages, images = request["messages"], media(request, "image_url")
    # Schemas can consist mostly of numbers, so they count as JSON; for all messages that would take too long.
    described = json.dumps([request.get(name) for name in DESCRIBING])
    fixed = OVERHEAD + MESSAGE_OVERHEAD * len(messages)
    said = count_bytes(messages) - count_bytes(images)
    return fixed + len(described) + said + sum(map(most_image_tokens, images))


def count_bytes(value: Any) -> int:
    """The bytes of all strings in a JSON value."""
    # `isascii`, because encoding a long prompt takes a while.
    return sum(
        len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
        for text in texts(value, keys=True)
    )


def most_image_tokens(image: Any) -> float:
    url = image.get("url") if isinstance(image, dict) else image
    # Some providers accept documents and films here, whose tokens nothing bounds.
    return IMAGE_TOKENS if isinstance(url, str) and url.startswith("data:image/") else inf


def most_answer_tokens(request: Request, longest: float) -> float:
    """The tokens of all answers of one call; `longest` is the model's own limit for one answer."""
    lengths = [request[name] for name in LENGTHS if request.get(name) is not None]
    length = max(lengths) if lengths and all(map(is_count, lengths)) else longest
    number = request.get("n")
    if number is None:
        return length
    return length * number if is_count(number) else inf


def count_characters(request: Request) -> int:
    """The characters of the prompt's text; images and sounds do not count."""
    prompt = [request["messages"], *(request.get(name) for name in DESCRIBING)]
    return sum(map(len, texts(prompt))) - sum(map(len, texts(media(request, "image_url", "input_audio"))))


def estimate_tokens(value: Any) -> int:
    """About how many tokens the strings in a JSON value have, without keys; rounded up."""
    return ceil(sum(map(len, texts(value))) / CHARACTERS_PER_TOKEN)


def media(request: Request, *types: str) -> list[Any]:
    """The images or sounds in the parts of these types, whose field has the name of the type."""
    messages = [message for message in request["messages"] if isinstance(message, dict)]
    contents = [message.get("content") for message in messages]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return [part.get(part["type"]) for part in parts if isinstance(part, dict) and part.get("type") in types]


def times(tokens: float, price: float) -> float:
    # Infinity times zero is not a number, but any number of free tokens is free.
    return tokens * price if price else 0.0
