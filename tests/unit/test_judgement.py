"""What a failed call means, where a request holds any words that a provider may repeat."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.model.answer import Trouble
from pytest_super.model.failure import explain
from pytest_super.model.judgement import Failure, Verdict, codes_in, judge

WORDS = st.sampled_from(
    [
        "insufficient_quota",
        "your credit balance is too low",
        "account is not active",
        "model_not_found",
        "not a valid model",
        "API key",
        "credentials",
        "the",
        "\n",
        '"',
    ]
)
PROMPTS = st.lists(WORDS | st.text(max_size=5), min_size=1, max_size=8).map(" ".join)
REPEATED = st.sampled_from([str, repr, json.dumps, lambda text: " ".join(text.split())])


@given(
    prompt=PROMPTS, repeat=REPEATED, status=st.sampled_from([None, 400, 403, 404, 422, 429]), data=st.data()
)
def test_no_prompt_makes_it_certain_that_all_calls_fail(
    prompt: str, repeat: object, status: int | None, data: st.DataObject
) -> None:
    assert callable(repeat)
    echo = repeat(prompt)
    start = data.draw(st.integers(0, len(echo)))
    words = f"messages: bad input {echo[start:]} at position 7".lower()
    verdict = judge(Failure(words=words, status=status, request={"messages": [{"content": prompt}]}))
    assert verdict != Verdict(Trouble.FATAL)


def test_the_words_of_a_tools_schema_are_the_requests_own_too() -> None:
    tools: list[object] = [{"function": {"parameters": {"properties": {"model_not_found": {}}}}}]
    words = "invalid schema for property model_not_found"
    assert judge(Failure(words=words, status=400, request={"tools": tools})) != Verdict(Trouble.FATAL)
    assert judge(Failure(words=words, status=400)) == Verdict(Trouble.FATAL)


def test_a_long_prompt_that_speaks_of_windows_does_not_hide_that_it_is_too_long() -> None:
    words = "prompt is too long: 210000 tokens > 200000 maximum"
    request = {"messages": [{"content": "What to do when a prompt is too long for its context window?"}]}
    assert judge(Failure(words=words, status=400, request=request)) == Verdict(Trouble.CONTEXT)


class EndpointConnectionError(Exception):
    """As a client calls it that does not build upon OSError."""


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (EndpointConnectionError("no way there"), Trouble.TRANSIENT),
        (ConnectionRefusedError("nobody is there"), Trouble.TRANSIENT),
        (KeyError("function"), Trouble.REFUSED),
    ],
)
def test_what_fails_before_it_is_sent_is_the_requests_fault_unless_it_is_the_networks(
    error: Exception, trouble: Trouble
) -> None:
    assert explain(error, "some/model", is_unsent=True).trouble is trouble
    assert explain(error, "some/model").trouble is Trouble.TRANSIENT


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ({"error": {"message": "insufficient_quota", "code": 429, "type": None}}, {"429", "none"}),
        ({"type": "error", "error": {"type": "Billing_Error"}}, {"error", "billing_error"}),
        ([{"error": {"code": 400, "details": [{"reason": "API_KEY_INVALID"}]}}], {"400", "api_key_invalid"}),
        (
            {"error": {"innererror": {"code": "ResponsibleAIPolicyViolation"}}},
            {"responsibleaipolicyviolation"},
        ),
        ({"error": "a text", "detail": [{"type": "x"}]}, set()),
        ("a text", set()),
    ],
)
def test_codes_are_found_where_providers_put_them(body: object, codes: set[str]) -> None:
    assert codes_in([body]) == codes
