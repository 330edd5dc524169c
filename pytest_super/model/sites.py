"""Where a provider is asked, with which headers, and chat completions as servers like OpenAI's take them.

litellm writes no request here: it drops fields, such as `thinking`, of models that it does not know.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from pytest_super.model.completion import Failure, ModelCallError
from pytest_super.model.known_model import KnownModel
from pytest_super.model.protocols.common import COMMON
from pytest_super.model.protocols.protocol import Request, Site, WireProtocol, text_of
from pytest_super.model.token_estimate import prices_in
from pytest_super.redaction import is_secret_name

# Of most, litellm knows the address and the key.
OTHERS = "dashscope deepseek github groq hosted_vllm lm_studio moonshot nebius sambanova together_ai xai zai"
LIKE_OPENAI = {
    **dict.fromkeys(OTHERS.split(), Site()),
    **dict.fromkeys((COMMON.provider, "custom_openai"), COMMON.site),
    "openrouter": Site(
        base_url="https://openrouter.ai/api/v1",
        base_variables=("OPENROUTER_API_BASE",),
        key_variables=("OPENROUTER_API_KEY", "OR_API_KEY"),
        takes_parts=True,
        takes_marks=True,
    ),
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
        # Reasoning models know a length by its newer name alone, and many sample in one way.
        if "max_tokens" in result:
            result.setdefault("max_completion_tokens", result.pop("max_tokens"))
        # litellm lists `temperature` for all of them.
        if "top_p" not in known.supported:
            result.pop("temperature", None)
    return result | (given.get("extra_body") or {})


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


# Local servers of models need no key.
KEYLESS = ("localhost", "127.0.0.1", "::1")


def address_of(
    known: KnownModel, protocol: WireProtocol, parameters: Mapping[str, Any], passed: Mapping[str, str]
) -> tuple[str, httpx.Headers]:
    """The base URL and the headers of requests; `passed` are the client's. Raises ModelCallError.

    `parameters` are the user's, of which the address, the key and `extra_headers` matter here.
    """
    site = LIKE_OPENAI.get(known.provider, protocol.site)
    base = (known.base or first(site.base_variables) or site.base_url).rstrip("/")
    if not base:
        text = f"{known.model}: its address is not known: state --super-model-arg=api_base=URL"
        raise ModelCallError(Failure.FATAL, text)
    key = parameters.get("api_key") or known.key or first(site.key_variables)
    extra = parameters.get("extra_headers") or {}
    if not (key or any(map(is_secret_name, extra)) or urlsplit(base).hostname in KEYLESS):
        names = ", ".join(known.missing_keys()) or "the variable that litellm reads"
        told = f"its key is missing: set {names} (to any text, if {base} needs none)"
        raise ModelCallError(Failure.FATAL, f"{known.model}: {told}")
    # No header can end with a blank, as one without a key would.
    headers = httpx.Headers(protocol.headers(key or "-"))
    headers.update({name: value for name, names in site.headers.items() if (value := first(names))})
    headers.update(passed)
    headers.update(extra)
    return base, headers


def first(names: tuple[str, ...]) -> str:
    """The value of the first of these environment variables that is set, "" if none is."""
    return next(filter(None, map(os.environ.get, names)), "")
