"""What is read from an exception of litellm and its causes."""

import json
import ssl
from itertools import pairwise

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.model.completion import Failure
from pytest_super.model.explanation import codes_in, explain

DAMAGED = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")


class EndpointConnectionError(Exception):
    """As in botocore, where it is not an OSError."""


def wrapped(*errors: Exception) -> Exception:
    """The first error, which came from the second, and so on."""
    for outer, inner in pairwise(errors):
        outer.__context__ = inner
    return errors[0]


@pytest.mark.parametrize("is_sent", [True, False])
@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError("refused"),
        wrapped(EndpointConnectionError("no route"), ConnectionRefusedError("refused")),
        httpx.ConnectError("no route"),
        httpx.ReadTimeout(""),
        httpx.ProxyError("no proxy"),
        wrapped(ValueError("broken"), TypeError("wrapped"), TimeoutError()),
    ],
    ids=repr,
)
def test_a_failed_connection_is_transient_whether_anything_was_sent_or_not(
    error: Exception, is_sent: bool
) -> None:
    for otherwise in (None, Failure.CONTEXT):
        failure = explain(error, "some/model", is_sent=is_sent, otherwise=otherwise).failure
        assert failure is Failure.TRANSIENT


@pytest.mark.parametrize(
    ("error", "is_unconnected"),
    [
        (httpx.ConnectError("refused"), True),
        (httpx.ConnectTimeout(""), True),
        (wrapped(EndpointConnectionError(""), ConnectionRefusedError("")), True),
        (httpx.ReadError("reset"), False),
        (ConnectionResetError("reset"), False),
    ],
)
def test_a_connection_that_was_never_open_is_told_from_one_that_broke(
    error: Exception, is_unconnected: bool
) -> None:
    assert explain(error, "some/model").is_unconnected is is_unconnected


@pytest.mark.parametrize(
    "error",
    [
        wrapped(httpx.ConnectError("TLS"), ssl.SSLCertVerificationError("self-signed")),
        httpx.TooManyRedirects("20 redirects"),
    ],
)
def test_a_wrong_address_or_certificate_is_not_retried(error: Exception) -> None:
    assert explain(error, "some/model").failure is Failure.DENIED


@pytest.mark.parametrize(
    "error", [KeyError("function"), DAMAGED, json.JSONDecodeError("x", "x", 0), ImportError("google")]
)
def test_what_fails_before_anything_was_sent_concerns_the_request_or_all_requests(error: Exception) -> None:
    assert explain(error, "some/model", is_sent=False).failure is Failure.DENIED


# litellm chooses its class by sentences, in which the answer's bytes can occur.
@pytest.mark.parametrize("otherwise", [None, Failure.CONTEXT, Failure.FILTERED])
def test_a_damaged_answer_is_transient_and_one_that_cannot_be_read_is_unclear(
    otherwise: Failure | None,
) -> None:
    for error in (wrapped(ValueError(""), DAMAGED), httpx.DecodingError("gzip")):
        assert explain(error, "some/model", otherwise=otherwise).failure is Failure.TRANSIENT
    unreadable = wrapped(ValueError(""), json.JSONDecodeError("x", "x", 0))
    assert explain(unreadable, "some/model", otherwise=otherwise).failure is Failure.UNCLEAR
    assert explain(ValueError(""), "some/model", otherwise=otherwise).failure is (
        otherwise or Failure.UNCLEAR
    )


@given(
    status=st.integers(400, 599).filter(lambda status: status not in (401, 402)),
    otherwise=st.sampled_from([None, Failure.CONTEXT, Failure.FILTERED]),
)
def test_a_sentence_that_litellm_has_read_names_the_denial_and_stops_no_run(
    status: int, otherwise: Failure | None
) -> None:
    request = httpx.Request("POST", "http://host/v1")
    response = httpx.Response(status, request=request, json={"error": {"message": "invalid_api_key"}})
    answered = httpx.HTTPStatusError("", request=request, response=response)
    alone = explain(answered, "some/model").failure
    failure = explain(wrapped(ValueError(""), answered), "some/model", otherwise=otherwise).failure
    assert failure is not Failure.FATAL
    assert failure is (otherwise or alone if alone is Failure.DENIED else alone)


def test_causes_that_form_a_circle_come_to_an_end() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert explain(first, "some/model").failure is Failure.UNCLEAR


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
    assert codes_in(body) == codes
