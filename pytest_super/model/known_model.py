"""A model as litellm knows it: its provider, its prices, its limits, and whole answers.

litellm is used in no other module, and only by what it documents, so that another version changes nothing.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from typing import TYPE_CHECKING, Any

from pytest_super.json_values import plain
from pytest_super.model.explanation import explain
from pytest_super.model.failures import Failure, ModelCallError
from pytest_super.model.token_estimate import entry_of, prices_in
from pytest_super.redaction import secrets_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_super.model.protocols.protocol import Body, Request

# A whole answer can take this long, by default.
WHOLE_SECONDS = 600.0


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
        self._litellm = import_litellm()
        self.model = model
        self._secrets = secrets_in(parameters)
        self.provider, self.name = "", model
        """As litellm reads the name; the provider is "" if litellm knows none."""
        self.base, self.key = parameters.get("api_base") or parameters.get("base_url"), None
        try:
            found = self._litellm.get_llm_provider(
                model=model, api_base=self.base, api_key=parameters.get("api_key")
            )
            self.name, self.provider, self.key, self.base = found
        except Exception:
            # It raises exceptions of many classes for a name that it does not know.
            pass
        # litellm's own look-up asks the servers of some providers.
        self.entry = entry_of(model, self._litellm.model_cost)
        self.supported = self._supported()
        """The parameters of chat completions that the provider supports, as far as litellm knows."""
        if prices := prices_in(parameters):
            entry = {**prices, "litellm_provider": self.provider, "mode": "chat"}
            self._litellm.register_model({model: entry})

    def _supported(self) -> frozenset[str]:
        try:
            return frozenset(self._litellm.get_supported_openai_params(model=self.model) or ())
        except Exception:
            # An unknown provider; the first call reports that better.
            return frozenset()

    def missing_keys(self) -> list[str]:
        """The variables of the environment that the provider needs and that are not set."""
        found: list[str] = self._litellm.validate_environment(self.model)["missing_keys"]
        return found

    def cost(self, request: Mapping[str, Any], served: str | None, usage: Mapping[str, Any]) -> float | None:
        """litellm's sum for an answer, in US dollars; None if it does not know the price.

        It includes every discount and tier, and goes by the model that the answer names, `served`: a
        deployment has any name. `request` has the user's parameters, too. `usage` is OpenAI's.
        """
        try:
            response = self._litellm.ModelResponse(model=served, usage=self._litellm.Usage(**usage))
            return float(
                self._litellm.completion_cost(
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

    async def ask(self, request: Request, timeout: float | None) -> Body:
        """A whole chat completion, after `timeout` seconds at most.

        `request` has litellm's own parameters, too. Raises ModelCallError.
        """
        sent: list[bool] = []
        fixed = {"model": self.model, "drop_params": True, "stream": False}
        # litellm calls its logger with the finished request just before it is sent, and after a failure.
        fixed["logger_fn"] = lambda event: sent.append(event.get("log_event_type") != "post_api_call")
        # The gateway retries. Retrying here as well would multiply the attempts.
        fixed |= {"num_retries": 0, "max_retries": 0}
        seconds = WHOLE_SECONDS if timeout is None else timeout
        try:
            # litellm's own limit applies to each read, so an answer that trickles would never end.
            async with asyncio.timeout(seconds) as limit:
                response = await self._litellm.acompletion(**{**request, **fixed, "timeout": seconds})
                body: Body = plain(response.model_dump(warnings=False))
                return body
        except Exception as error:
            failure = explain(
                error, self.model, self._secrets, is_sent=any(sent), otherwise=self._meaning(error)
            )
        if limit.expired():
            failure = ModelCallError(Failure.TRANSIENT, f"{self.model}: no answer within {seconds:g} s")
        # Outside of the handler: a traceback would show the secrets that `explain` removes.
        raise failure

    def _meaning(self, error: Exception) -> Failure | None:
        """What litellm has read in a provider's sentences, which can quote a prompt: so no run ends by it."""
        if isinstance(error, self._litellm.ContextWindowExceededError):
            return Failure.CONTEXT
        return Failure.FILTERED if isinstance(error, self._litellm.ContentPolicyViolationError) else None
