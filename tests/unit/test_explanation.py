"""What is read from an exception of litellm and its causes."""

from __future__ import annotations

import pytest

from pytest_super.model.explanation import codes_in, explain
from pytest_super.model.failures import Failure


class EndpointConnectionError(Exception):
    """As in botocore, where it is not an OSError."""


@pytest.mark.parametrize("error", [EndpointConnectionError("no route"), ConnectionRefusedError("refused")])
@pytest.mark.parametrize("is_sent", [True, False])
def test_a_failed_connection_is_transient(error: Exception, is_sent: bool) -> None:
    assert explain(error, "some/model", is_sent=is_sent).failure is Failure.TRANSIENT


def test_a_connection_that_failed_is_found_among_the_causes() -> None:
    error = ValueError("broken")
    error.__cause__ = TypeError("wrapped")
    error.__cause__.__context__ = TimeoutError()
    assert explain(error, "some/model").failure is Failure.TRANSIENT


def test_causes_that_form_a_circle_come_to_an_end() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert explain(first, "some/model").failure is Failure.UNCLEAR


def test_an_error_of_the_library_that_was_sent_is_an_answer_that_cannot_be_read() -> None:
    error = explain(KeyError("choices"), "some/model")
    assert error.failure is Failure.UNCLEAR
    assert error.message == "some/model: the answer cannot be read: 'choices'"
    assert explain(KeyError("function"), "some/model", is_sent=False).failure is Failure.DENIED


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
