"""A model as litellm knows it: its provider, its prices, its limits, and whole answers.

litellm is used in no other module, and only by what it documents, so that another version changes nothing.
"""

import asyncio
import gc
import json
import os
import re
import warnings
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from pytest_super.digests import digest
from pytest_super.json_values import object_in, parts_in, plain
from pytest_super.model.completion import Failure, ModelCallError
from pytest_super.model.explanation import explain
from pytest_super.model.protocols.protocol import MOST_TOKENS, Body, Request
from pytest_super.model.token_estimate import prices_in
from pytest_super.redaction import secrets_in
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.user_cache import cache_folder

# A whole answer can take this long, by default.
WHOLE_SECONDS = 600.0
# Most of their prices are plain; litellm has rules of its own for some models of others.
PLAINLY_PRICED = ("openai", "anthropic", "gemini")
# The file that litellm reads when it must not download a newer one.
TABLE = "model_prices_and_context_window_backup.json"
# Above the shortest of prompts that have a price of their own.
LONG_PROMPT = 100_000
LONG_PRICE = re.compile(r"\w+_above_\d+k_tokens")
# Prices by the length of a prompt or by the hour: litellm knows when they hold.
CONDITIONAL = {"tiered_pricing", "off_peak_pricing"}
# litellm knows no address on this machine, where each start of a server can have another port.
LOCAL_PORT = re.compile(r"(?<=://)(localhost|127\.0\.0\.1|\[::1\]):\d+(?=/|$)")
# Two threads would mix up the filters of warnings.
IMPORTING = Lock()


def import_litellm() -> Any:
    """litellm, which prints nothing and contacts the provider alone. The first import takes seconds."""
    with IMPORTING:
        litellm = imported()
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    # These warnings are about litellm's own types, and about malformed answers, which are checked here.
    warnings.filterwarnings("ignore", module=r"(litellm|openai|pydantic)\b")
    return litellm


@cache
def imported() -> Any:
    # Otherwise it would download its table of prices.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    # Its 300,000 objects live as long as the process. Scanning them takes a seventh of the import's time.
    gc.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm
    gc.freeze()
    gc.enable()
    return litellm


class Reading(NamedTuple):
    """What litellm reads in a model's name."""

    provider: str
    """"" if litellm knows none."""
    name: str
    """As the provider calls the model."""
    supported: list[str]
    """The parameters of chat completions that the provider supports, as far as litellm knows."""


class KnownModel:
    """A model by its name. What litellm reads in it is kept, since importing litellm takes seconds."""

    def __init__(self, model: str, parameters: Mapping[str, Any]) -> None:
        """`parameters` are the user's, of which `api_base`, `api_key` and prices matter here."""
        self.model = model
        self._secrets = secrets_in(parameters)
        self._prices = prices_in(parameters)
        self.base, self.key = parameters.get("api_base") or parameters.get("base_url"), None
        self._name_key = ["name", model, self.base and LOCAL_PORT.sub(r"\1", str(self.base))]
        kept = read_kept(self._name_key)
        reading = Reading(*kept) if kept else self._read(parameters.get("api_key"))
        self.provider, self.name = reading.provider, reading.name
        self.supported = frozenset(reading.supported)
        self.entry = entry_of(model, price_table())

    def _read(self, key: str | None) -> Reading:
        """Read what litellm knows, and set the address and the key if it knows them."""
        litellm, given = import_litellm(), self.base
        reading = Reading("", self.model, [])
        # It raises exceptions of many classes for a name that it does not know; the first call reports that.
        with suppress(Exception):
            found = litellm.get_llm_provider(model=self.model, api_base=given, api_key=key)
            reading, self.key, self.base = Reading(found[1], found[0], []), found[2], found[3]
            supported = litellm.get_supported_openai_params(model=self.model)
            reading = Reading(found[1], found[0], sorted(supported or ()))
        # An address or a key can come from the environment.
        if reading.provider and self.key in (None, key) and self.base == given:
            keep(self._name_key, reading)
        return reading

    def missing_keys(self) -> list[str]:
        """The variables of the environment that the provider needs and that are not set."""
        found: list[str] = import_litellm().validate_environment(self.model)["missing_keys"]
        return found

    def cost(self, request: Mapping[str, Any], served: str | None, usage: Mapping[str, Any]) -> float | None:
        """What an answer costs, in US dollars; None if litellm does not know the price.

        By the model that the answer names, `served`: a deployment has any name. `request` has the user's
        parameters, too. `usage` is OpenAI's.
        """
        if self.provider == "openrouter" and not self._prices and (stated := stated_cost(usage)) is not None:
            return stated
        if self._prices or request.get("base_model") or request.get("service_tier"):
            return self._sum(request, served, usage)
        if self.provider in PLAINLY_PRICED:
            entry = entry_of(f"{self.provider}/{served or self.name}", price_table())
            if (cost := plain_cost(entry, usage)) is not None:
                return cost
        is_priced = read_kept(["price", self.model, served])
        if is_priced is None:
            is_priced = self._sum({}, served, {"prompt_tokens": 1}) is not None
            keep(["price", self.model, served], is_priced)
        return self._sum(request, served, usage) if is_priced else None

    @cached_property
    def _told_of_prices(self) -> Any:
        """litellm, which then has the user's prices."""
        litellm = import_litellm()
        if self._prices:
            entry = {**self._prices, "litellm_provider": self.provider, "mode": "chat"}
            litellm.register_model({self.model: entry})
        return litellm

    def _sum(self, request: Mapping[str, Any], served: str | None, usage: Mapping[str, Any]) -> float | None:
        """litellm's, which includes every discount and tier."""
        litellm = self._told_of_prices
        # It raises a plain Exception for a model whose price it does not know.
        with suppress(Exception):
            cost = litellm.completion_cost(
                litellm.ModelResponse(model=served, usage=litellm.Usage(**usage)),
                model=self.model,
                custom_llm_provider=self.provider or None,
                base_model=request.get("base_model"),
                custom_pricing=bool(self._prices),
                optional_params={"service_tier": request.get("service_tier")},
            )
            return float(cost)
        return None

    async def ask(self, request: Request, timeout: float | None) -> Body:
        """A whole chat completion, after `timeout` seconds at most. Raises ModelCallError."""
        # In a thread: meanwhile other calls go on.
        litellm = await asyncio.to_thread(import_litellm)
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
                response = await litellm.acompletion(**{**request, **fixed, "timeout": seconds})
                body: Body = plain(response.model_dump(warnings=False))
                return body
        except Exception as error:
            meaning = self._meaning(error)
            failure = explain(error, self.model, self._secrets, is_sent=any(sent), otherwise=meaning)
        if limit.expired():
            failure = ModelCallError(Failure.TRANSIENT, f"{self.model}: no answer within {seconds:g} s")
        # Outside of the handler: a traceback would show the secrets that `explain` removes.
        raise failure

    def _meaning(self, error: Exception) -> Failure | None:
        """What litellm has read in a provider's sentences, which can quote a prompt: so no run ends by it."""
        litellm = import_litellm()
        if isinstance(error, litellm.ContextWindowExceededError):
            return Failure.CONTEXT
        return Failure.FILTERED if isinstance(error, litellm.ContentPolicyViolationError) else None


def entry_of(model: str, entries: Mapping[str, Any]) -> dict[str, Any]:
    """The entry for a model in litellm's table; empty if it has none."""
    provider, _, name = model.partition("/")
    entry: dict[str, Any] = entries.get(model) or entries.get(name) or {}
    # The beginning is enough: litellm divides one provider into `vertex_ai-language-models` and others.
    is_same = model in entries or str(entry.get("litellm_provider")).startswith(provider)
    return entry if is_same else {}


@cache
def price_table() -> dict[str, Any]:
    """litellm's, by the names of models, without importing litellm. Empty if it is not where it was."""
    found = find_spec("litellm")
    folders = (found and found.submodule_search_locations) or []
    with suppress(OSError, ValueError, IndexError):
        table: dict[str, Any] = json.loads((Path(folders[0]) / TABLE).read_bytes())
        return table
    return {}


def plain_cost(entry: Mapping[str, Any], usage: Mapping[str, Any]) -> float | None:
    """What an answer costs in US dollars, by the four prices that most models have.

    None if that does not decide it: the entry has other prices that can hold, or `usage`, which is OpenAI's,
    counts something else.
    """
    stated = [field for part in parts_in(usage) for field in part.items()]
    counts = {name: value for name, value in stated if value and not isinstance(value, dict)}
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


def stated_cost(usage: Mapping[str, Any]) -> float | None:
    """What OpenRouter says that an answer costs, in US dollars; None if it does not say.

    Source: https://openrouter.ai/docs/use-cases/usage-accounting
    """
    parts: list[Any] = [usage.get("cost")]
    if usage.get("is_byok") is True:
        # The provider charges the user's own key, and OpenRouter a fee.
        parts.append(object_in(usage, "cost_details").get("upstream_inference_cost"))
    is_stated = all(isinstance(part, int | float) and 0 <= part <= MOST_TOKENS for part in parts)
    return float(sum(parts)) if is_stated else None


def read_kept(key: list[Any]) -> Any:
    """What was kept of this version of litellm; None if that is nothing."""
    with suppress(OSError, ValueError):
        return json.loads(kept_file(key).read_bytes())
    return None


def keep(key: list[Any], value: Any) -> None:
    with suppress(OSError):
        file = kept_file(key)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, json.dumps(value))


def kept_file(key: list[Any]) -> Path:
    return cache_folder("models") / f"{digest([litellm_version(), *key])}.json"


@cache
def litellm_version() -> str:
    return version("litellm")
