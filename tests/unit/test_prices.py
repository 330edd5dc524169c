from collections.abc import Mapping
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.model.known_model import PLAINLY_PRICED, entry_of, import_litellm, plain_cost, price_table
from pytest_super.model.token_estimate import Prices, prices_of


def test_the_highest_price_of_all_tiers_is_the_bound() -> None:
    known = {
        "input_cost_per_token": 1,
        "input_cost_per_token_above_200k_tokens": 2,
        "cache_creation_input_token_cost_above_1hr": 3,
        "output_cost_per_token": 4,
        "output_cost_per_token_priority": 5,
        "search_context_cost_per_query": {"search_context_size_low": 9},
        "tiered_pricing": [{"output_cost_per_reasoning_token": 6, "range": [0, 9]}],
        "max_output_tokens": 7,
        "max_tokens": 8,
    }
    assert prices_of(known, {}) == Prices(prompt=3, answer=6, longest_answer=7)


def test_the_users_prices_win() -> None:
    known = {"input_cost_per_token": 1, "output_cost_per_token": 4, "max_tokens": 7}
    given = {"input_cost_per_token": 0, "output_cost_per_token": 0.5, "top_p": 1}
    assert prices_of(known, given) == Prices(prompt=0, answer=0.5, longest_answer=7)
    assert prices_of({}, given) == Prices(prompt=0, answer=0.5, longest_answer=inf)


@pytest.mark.parametrize("known", [{}, {"input_cost_per_token": 1, "input_cost_per_second": 1}])
def test_prices_that_are_not_known_or_not_of_tokens_have_no_bound(known: dict[str, Any]) -> None:
    assert prices_of(known, {}) == Prices(prompt=inf, answer=inf, longest_answer=inf)


def test_a_model_has_its_own_entry_or_that_of_its_name_at_the_same_provider() -> None:
    entries = {
        "m": {"litellm_provider": "vertex_ai-language-models", "max_tokens": 1},
        "azure/m": {"litellm_provider": "azure", "max_tokens": 2},
    }
    found = [entry_of(name, entries).get("max_tokens") for name in ("vertex_ai/m", "azure/m", "m", "groq/m")]
    assert found == [1, 2, 1, None]


# What an answer costs

# With the provider.
PRICED = sorted(
    f"{provider}/{name.removeprefix(f'{provider}/')}"
    for name, entry in price_table().items()
    if entry.get("mode") in ("chat", "responses")
    and (provider := entry.get("litellm_provider")) in PLAINLY_PRICED
)
COUNTS = st.integers(0, 300_000)


@st.composite
def usages(draw: st.DrawFn) -> dict[str, Any]:
    """What an answer of OpenAI or of Anthropic has used."""
    read, written, other, answer = draw(COUNTS), draw(COUNTS), draw(COUNTS), draw(COUNTS)
    prompt = read + written + other
    return {
        "prompt_tokens": prompt,
        "completion_tokens": answer,
        "total_tokens": prompt + answer,
        "prompt_tokens_details": {"cached_tokens": read, "audio_tokens": draw(st.sampled_from([0, 0, 5]))},
        "completion_tokens_details": {"reasoning_tokens": draw(st.integers(0, answer))},
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }


def by_litellm(model: str, usage: Mapping[str, Any]) -> float:
    litellm, (provider, _, name) = import_litellm(), model.partition("/")
    response = litellm.ModelResponse(model=name, usage=litellm.Usage(**usage))
    return float(litellm.completion_cost(response, model=name, custom_llm_provider=provider))


@given(st.sampled_from(PRICED), usages())
def test_a_plain_cost_is_litellms(model: str, usage: dict[str, Any]) -> None:
    cost = plain_cost(entry_of(model, price_table()), usage)
    assert cost is None or cost == pytest.approx(by_litellm(model, usage))


def test_most_answers_have_a_plain_cost() -> None:
    plain = {"prompt_tokens": 1000, "completion_tokens": 100}
    usage = {**plain, "prompt_tokens_details": {"cached_tokens": 500}}
    # Many of Google's have no price of what is cached.
    names = [name for name in PRICED if not name.startswith("gemini/")]
    costs = [plain_cost(entry_of(name, price_table()), usage) for name in names]
    assert sum(cost is not None for cost in costs) > 0.7 * len(names)
    google = (plain_cost(entry_of(name, price_table()), plain) for name in set(PRICED) - set(names))
    assert any(cost is not None for cost in google)
    assert plain_cost(price_table()["gpt-4o"], usage) == pytest.approx(
        500 * 2.5e-6 + 500 * 1.25e-6 + 100 * 10e-6
    )


ENTRY = {"input_cost_per_token": 1, "output_cost_per_token": 2, "cache_read_input_token_cost": 0.5}


@pytest.mark.parametrize(
    ("entry", "usage"),
    [
        ({}, {}),
        ({"tiered_pricing": []}, {}),
        ({"output_cost_per_reasoning_token": 3}, {"completion_tokens_details": {"reasoning_tokens": 1}}),
        ({"input_cost_per_token_above_128k_tokens": 3}, {"prompt_tokens": 200_000}),
        ({}, {"prompt_tokens_details": {"audio_tokens": 1}}),
        ({}, {"cache_creation_input_tokens": 1}),
        ({}, {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 11}}),
        ({}, {"server_tool_use": {"web_search_requests": 1}}),
        ({"input_cost_per_token": None}, {}),
    ],
)
def test_what_four_prices_do_not_decide_has_no_plain_cost(
    entry: dict[str, Any], usage: dict[str, Any]
) -> None:
    used = {"prompt_tokens": 10, "completion_tokens": 5, **usage}
    expected = 20 if not entry and not usage else None
    assert plain_cost({**ENTRY, **entry}, used) == expected
