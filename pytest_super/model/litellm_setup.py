"""litellm, configured, and what it knows about providers."""

from __future__ import annotations

import os
import warnings
from importlib.util import find_spec
from typing import Any

from pytest_super.model.answer_size import limit_answers

# The types with which OpenAI's client says that a parameter was not given.
LEFT_OUT = ("Omit", "NotGiven")


def import_litellm() -> Any:
    """litellm, configured to print nothing and to contact only the provider."""
    # Otherwise it would download its table of prices.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm
    skip_transformation()
    limit_answers()
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    # These warnings are about litellm's own types, and about malformed answers, which are checked here.
    warnings.filterwarnings("ignore", module=r"(litellm|openai|pydantic)\b")
    return litellm


def skip_transformation() -> None:
    """Make OpenAI's client send requests unchanged.

    Version 2 walks through every message of every call to replace Python's own values by JSON's: 90 ms with
    400 messages, on the one event loop that all trials share. Our requests came as JSON.
    """
    from openai.resources.chat.completions import completions

    async def unchanged(body: Any, _expected: Any) -> Any:
        # If fields beyond OpenAI's are added to a body, nothing later removes the omitted ones from it.
        return {name: value for name, value in body.items() if type(value).__name__ not in LEFT_OUT}

    if hasattr(completions, "async_maybe_transform"):
        completions.async_maybe_transform = unchanged


def would_run_tools() -> bool:
    """Whether this version of litellm looks for tools that it could run itself.

    An agent's tools belong to the agent. For that, version 1.106 imports the package `mcp` in every call with
    tools, although it does not require it. A version without the module would pass the setting on.
    """
    try:
        return find_spec("litellm.responses.mcp.chat_completions_handler") is not None
    except ModuleNotFoundError:
        return False


def find_provider(litellm: Any, model: str) -> tuple[str, str] | None:
    """The provider that litellm finds in the model's name, and the name that it has there."""
    try:
        name, provider, *_ = litellm.get_llm_provider(model=model)
    except Exception:
        return None
    return provider, name


def supports(litellm: Any, model: str, parameter: str) -> bool:
    """Whether the provider supports the parameter, as far as litellm knows without asking it."""
    try:
        return parameter in (litellm.get_supported_openai_params(model=model) or ())
    except Exception:
        # An unknown provider; the first call reports that better.
        return False
