"""Providers that speak chat completions as OpenAI does, and state what a stream has used.

A request is written as they take it: without what only litellm knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.model.prices import prices_in
from pytest_super.model.protocols.common import COMMON
from pytest_super.model.protocols.protocol import Request, Site, text_of

if TYPE_CHECKING:
    from pytest_super.model.known_model import KnownModel

OPENROUTER = Site(
    base_url="https://openrouter.ai/api/v1",
    base_variables=("OPENROUTER_API_BASE",),
    key_variables=("OPENROUTER_API_KEY", "OR_API_KEY"),
    takes_parts=True,
    takes_marks=True,
)
# Of most, litellm knows the address and the key.
OTHERS = "dashscope deepseek github groq hosted_vllm lm_studio moonshot nebius sambanova together_ai xai zai"
LIKE_OPENAI = {
    **dict.fromkeys(OTHERS.split(), Site()),
    **dict.fromkeys((COMMON.provider, "custom_openai"), COMMON.site),
    "openrouter": OPENROUTER,
    "litellm_proxy": Site(takes_parts=True, takes_marks=True),
}
# litellm's parameters, which the user can state: they are about the call, and no server knows them.
ABOUT_THE_CALL = """
    additional_drop_params allowed_openai_params api_base api_key api_version base_model base_url
    custom_llm_provider drop_params extra_body extra_headers headers max_retries num_retries ssl_verify
    timeout request_timeout
"""


def written(known: KnownModel, request: Request) -> Request:
    """The request with the parameters that the model takes. `request` has the user's, too."""
    site = LIKE_OPENAI[known.provider]
    given = {name: value for name, value in request.items() if value is not None}
    supported = known.supported | set(given.get("allowed_openai_params") or ())
    unknown = {*ABOUT_THE_CALL.split(), *prices_in(given), *(given.get("additional_drop_params") or ())}
    # An empty list says that nothing is known.
    unknown |= COMMON.fields - supported - {"messages"} if supported else set()
    result = {name: value for name, value in given.items() if name not in unknown}
    result["messages"] = [taken(message, site) for message in given["messages"]]
    if "tools" in result and not site.takes_marks:
        result["tools"] = list(map(unmarked, result["tools"]))
    if known.provider == COMMON.provider and known.entry.get("supports_reasoning"):
        result = for_reasoning(known, result)
    return result | (given.get("extra_body") or {})


def for_reasoning(known: KnownModel, request: Request) -> Request:
    """OpenAI's reasoning models know a length by its newer name alone, and many sample in one way."""
    result = dict(request)
    if "max_tokens" in result:
        result.setdefault("max_completion_tokens", result.pop("max_tokens"))
    # litellm lists `temperature` for all of them.
    if "top_p" not in known.supported:
        result.pop("temperature", None)
    return result


def taken(message: dict[str, Any], site: Site) -> dict[str, Any]:
    """The message as the provider takes it."""
    parts = message.get("content")
    if site.takes_marks:
        return message
    message = unmarked(message)
    if not isinstance(parts, list):
        return message
    parts = list(map(unmarked, parts))
    if not site.takes_parts and all(part.get("type") == "text" for part in parts):
        return {**message, "content": text_of(parts)}
    return {**message, "content": parts}


def unmarked(value: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name != "cache_control"}
