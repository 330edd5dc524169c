"""How large a call is, and the most that it can use, before it is made."""

from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.model.protocols.protocol import Request
from pytest_super.model.token_estimate import (
    IMAGE_TOKENS,
    MaxUsage,
    Prices,
    count_characters,
    estimate_tokens,
    max_usage,
)

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


def test_images_count_by_their_number_and_not_by_their_length() -> None:
    assert count_characters(request([PNG])) < 50
    assert IMAGE_TOKENS <= tokens([PNG]) - tokens([]) < IMAGE_TOKENS + 100
    assert 2 * IMAGE_TOKENS <= tokens([PNG, PNG]) - tokens([]) < 2 * IMAGE_TOKENS + 200


def test_sound_counts_by_its_bytes() -> None:
    part = {"type": "input_audio", "input_audio": {"data": "x" * 9000, "format": "wav"}}
    assert count_characters(request([part])) < 50
    assert 9000 <= tokens([part]) - tokens([]) < 9100


@pytest.mark.parametrize("url", ["data:application/pdf;base64,xx", "data:video/mp4;base64,xx", None])
def test_documents_and_films_have_no_bound(url: str | None) -> None:
    assert tokens([{"type": "image_url", "image_url": {"url": url}}]) == inf
    assert tokens([{"type": "image_url", "image_url": url}]) == inf


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


def test_any_number_of_free_tokens_is_free() -> None:
    free = Prices(prompt=0, answer=0, longest_answer=inf)
    assert max_usage(request([{"type": "image_url", "image_url": None}]), free).cost_usd == 0


@given(st.text())
def test_an_estimate_is_a_quarter_of_the_characters_rounded_up(text: str) -> None:
    tokens = estimate_tokens([{"role": text}, None, 3])
    assert 4 * tokens - 3 <= len(text) <= 4 * tokens
