"""How large a call is, and the most that it can use, before it is made."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.model.token_estimate import (
    IMAGE_TOKENS,
    Prices,
    count_characters,
    entry_of,
    estimate_tokens,
    max_usage,
    prices_of,
)

if TYPE_CHECKING:
    from pytest_super.model.protocols.protocol import Request
    from pytest_super.model.token_estimate import MaxUsage

PRICES = Prices(prompt=2.0, answer=3.0, longest_answer=1000)
PNG = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "x" * 9000}}
TOOL = {"type": "function", "function": {"name": "run", "parameters": {"enum": [*range(1000)]}}}


def request(content: Any = "hello", **fields: Any) -> Request:
    return {"messages": [{"role": "user", "content": content}], **fields}


def most(content: Any = "hello", **fields: Any) -> MaxUsage:
    return max_usage(request(content, **fields), PRICES)


def tokens(content: Any = "hello", **fields: Any) -> float:
    return most(content, **fields).prompt_tokens


# Prompts


@given(st.text(), st.text())
def test_each_byte_of_the_text_may_be_a_token(text: str, more: str) -> None:
    assert tokens(text) >= len(text.encode())
    parts = [{"type": "text", "text": text}, {"type": "text", "text": more}]
    assert tokens(parts) >= len((text + more).encode())
    assert tokens(text + more) - tokens(text) >= len(more.encode())


@pytest.mark.parametrize("name", ["tools", "functions", "response_format"])
def test_descriptions_of_tools_and_answers_count(name: str) -> None:
    assert tokens(**{name: [TOOL]}) - tokens() > 3000
    assert count_characters(request(**{name: [TOOL]})) > count_characters(request())


def test_text_that_looks_like_a_data_url_is_text() -> None:
    text = "data:" + "x" * 5000
    assert count_characters(request(text)) == len(text) + len("user")
    assert count_characters(request([{"type": "text", "text": text}])) > 5000
    assert tokens(text) > 5000


def test_images_count_by_their_number_and_not_by_their_length() -> None:
    assert count_characters(request([PNG])) < 50
    assert IMAGE_TOKENS <= tokens([PNG]) - tokens([]) < IMAGE_TOKENS + 100
    assert 2 * IMAGE_TOKENS <= tokens([PNG, PNG]) - tokens([]) < 2 * IMAGE_TOKENS + 200


def test_other_fields_of_an_image_part_are_text() -> None:
    part = {**PNG, "text": "x" * 5000}
    assert count_characters(request([part])) > 5000
    assert tokens([part]) - tokens([PNG]) > 5000


def test_sound_counts_by_its_bytes() -> None:
    part = {"type": "input_audio", "input_audio": {"data": "x" * 9000, "format": "wav"}}
    assert count_characters(request([part])) < 50
    assert 9000 <= tokens([part]) - tokens([]) < 9100


@pytest.mark.parametrize("url", ["data:application/pdf;base64,xx", "data:video/mp4;base64,xx", None])
def test_documents_and_films_have_no_bound(url: str | None) -> None:
    assert tokens([{"type": "image_url", "image_url": {"url": url}}]) == inf
    assert tokens([{"type": "image_url", "image_url": url}]) == inf


@pytest.mark.parametrize("messages", [["x"], [None], [{"role": "user", "content": [None, 3, {"type": []}]}]])
def test_malformed_messages_have_a_size(messages: list[Any]) -> None:
    assert max_usage({"messages": messages}, PRICES).prompt_tokens > 0
    assert count_characters({"messages": messages}) >= 0


# Answers and prices


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({}, 1000),
        ({"max_tokens": 10}, 10),
        ({"max_completion_tokens": 20}, 20),
        ({"max_tokens": 10, "max_completion_tokens": 20}, 20),
        ({"max_tokens": None, "n": None}, 1000),
        ({"max_tokens": -1}, 1000),
        ({"max_tokens": 10, "max_completion_tokens": -1}, 1000),
        ({"max_tokens": "many"}, 1000),
        ({"max_tokens": 10**400}, 1000),
        ({"max_tokens": 10, "n": 4}, 40),
        ({"max_tokens": 10, "n": "4"}, inf),
        ({"max_tokens": 10, "n": 10**400}, inf),
    ],
)
def test_answers_are_as_long_as_the_request_and_the_model_let_them_be(
    fields: dict[str, Any], answer: float
) -> None:
    asked = most(**fields)
    assert asked.cost_usd == 2.0 * asked.prompt_tokens + 3.0 * answer


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


def test_any_number_of_free_tokens_is_free() -> None:
    free = Prices(prompt=0, answer=0, longest_answer=inf)
    assert max_usage(request([{"type": "image_url", "image_url": None}]), free).cost_usd == 0


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


@given(st.text())
def test_an_estimate_is_a_quarter_of_the_characters_rounded_up(text: str) -> None:
    tokens = estimate_tokens([{"role": text}, None, 3])
    assert 4 * tokens - 3 <= len(text) <= 4 * tokens
