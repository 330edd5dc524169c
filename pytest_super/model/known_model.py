"""What litellm knows about a model: its provider, its prices, its limits and how its tokens are counted."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

from pytest_super.model.json_values import texts
from pytest_super.model.token_estimate import entry_of, estimate_tokens
from pytest_super.model.usage import prices_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_super.model.protocols.protocol import Body, Request

# Its tokenizer comes with litellm; those of other models would be downloaded.
COUNTED_AS = "gpt-4"


def import_litellm() -> Any:
    """litellm, configured to print nothing and to contact only the provider."""
    # Otherwise it would download its table of prices.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    # These warnings are about litellm's own types, and about malformed answers, which are checked here.
    warnings.filterwarnings("ignore", module=r"(litellm|openai|pydantic)\b")
    return litellm


class KnownModel:
    """A model by its name. The constructor imports litellm, which takes seconds."""

    def __init__(self, model: str, parameters: Mapping[str, Any]) -> None:
        """`parameters` are the user's, of which `api_base`, `api_key` and prices matter here."""
        self.litellm = import_litellm()
        self.model = model
        self.provider, self.name = "", model
        """As litellm reads the name; the provider is "" if there is no such one."""
        self.base, self.key = parameters.get("api_base") or parameters.get("base_url"), None
        try:
            found = self.litellm.get_llm_provider(
                model=model, api_base=self.base, api_key=parameters.get("api_key")
            )
            self.name, self.provider, self.key, self.base = found
        except Exception:
            # It raises exceptions of many classes for a name that it does not know.
            pass
        # litellm's own look-up asks the servers of some providers.
        self.entry = entry_of(model, self.litellm.model_cost)
        self.supported = self._supported()
        """The parameters of chat completions that the provider supports, as far as litellm knows."""
        if prices := prices_in(parameters):
            entry = {**prices, "litellm_provider": self.provider, "mode": "chat"}
            self.litellm.register_model({model: entry})

    def _supported(self) -> frozenset[str]:
        try:
            return frozenset(self.litellm.get_supported_openai_params(model=self.model) or ())
        except Exception:
            # An unknown provider; the first call reports that better.
            return frozenset()

    def missing_keys(self) -> list[str]:
        """The variables of the environment that the provider needs and that are not set."""
        found: list[str] = self.litellm.validate_environment(self.model)["missing_keys"]
        return found

    def cost(self, request: Mapping[str, Any], served: str | None, usage: Mapping[str, Any]) -> float | None:
        """litellm's sum for an answer, in US dollars; None if it does not know the price.

        It includes every discount and tier, and goes by the model that the answer names, `served`: a
        deployment has any name. `request` has the user's parameters, too. `usage` is OpenAI's.
        """
        try:
            response = self.litellm.ModelResponse(model=served, usage=self.litellm.Usage(**usage))
            return float(
                self.litellm.completion_cost(
                    response,
                    model=self.model,
                    custom_llm_provider=self.provider or None,
                    base_model=request.get("base_model"),
                    custom_pricing=bool(prices_in(request)),
                    optional_params={"service_tier": request.get("service_tier")},
                )
            )
        except Exception:
            # It raises a plain Exception for a model whose price it does not know.
            return None

    def count(self, request: Request, body: Body) -> tuple[int, int]:
        """The tokens of a chat completion's prompt and of its answer. A long prompt takes a second."""
        message = body["choices"][0]["message"]
        said = [message.get("content"), message.get("tool_calls"), message.get("reasoning_content")]
        completion = sum(self.litellm.token_counter(COUNTED_AS, text=text) for text in texts(said))
        messages, tools = request["messages"], request.get("tools")
        try:
            prompt = self.litellm.token_counter(COUNTED_AS, messages=messages, tools=tools)
        except Exception:
            # It does not support every kind of part that providers accept.
            prompt = estimate_tokens([messages, tools])
        return prompt, completion
