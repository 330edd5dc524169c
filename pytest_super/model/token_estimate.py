"""How large a call is before it is made: its characters, and the most tokens that it can use."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import ceil, inf
from typing import TYPE_CHECKING, Any

from pytest_super.model.json_values import texts
from pytest_super.model.prices import is_count

if TYPE_CHECKING:
    from pytest_super.model.answer import Request
    from pytest_super.model.prices import Prices

# Average of English text and code; used only where nothing better is known.
CHARACTERS_PER_TOKEN = 4
# Fields next to the messages that providers write into the prompt.
DESCRIBING = ("tools", "functions", "response_format", "tool_choice", "function_call", "prediction")
MEDIA = ("image_url", "input_audio")
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
    return MaxUsage(prompt_tokens=prompt, cost_usd=prices.max_cost(prompt, answer))


def most_prompt_tokens(request: Request) -> float:
    """An upper bound: one token a byte of text or sound, and a constant for each image."""
    messages, media = split(request)
    # Schemas can consist mostly of numbers, so they count as JSON; for all messages that would take too long.
    described = json.dumps([request.get(name) for name in DESCRIBING])
    said = sum(map(count_bytes, texts(messages, keys=True)))
    fixed = OVERHEAD + MESSAGE_OVERHEAD * len(messages)
    return fixed + len(described) + said + sum(map(most_media_tokens, media))


def count_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def most_media_tokens(part: dict[str, Any]) -> float:
    if part["type"] == "input_audio":
        return sum(map(len, texts(part.get("input_audio"))))
    image = part.get("image_url")
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
    messages, _ = split(request)
    return sum(map(len, texts([messages, *(request.get(name) for name in DESCRIBING)])))


def estimate_tokens(value: Any) -> int:
    """About how many tokens the strings in a JSON value have, without keys; rounded up."""
    return ceil(sum(map(len, texts(value))) / CHARACTERS_PER_TOKEN)


def split(request: Request) -> tuple[list[Any], list[dict[str, Any]]]:
    """The messages of a request without their images and sounds, and the parts that contain those."""
    said: list[Any] = []
    media: list[dict[str, Any]] = []
    for message in request["messages"]:
        content = message.get("content") if isinstance(message, dict) else None
        parts = content if isinstance(content, list) else []
        found = [part for part in parts if is_media(part)]
        media += found
        said.append({**message, "content": [without_media(part) for part in parts]} if found else message)
    return said, media


def without_media(part: Any) -> Any:
    # Any other field of such a part is text that a provider may read.
    return {name: value for name, value in part.items() if name != part["type"]} if is_media(part) else part


def is_media(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in MEDIA
