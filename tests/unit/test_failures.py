"""What a failed model call means, by status, codes and exception classes alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.model.failures import RETRIED, Failure, ModelCallError, classify

STATUS = {
    400: Failure.DENIED,
    401: Failure.FATAL,
    402: Failure.FATAL,
    403: Failure.DENIED,
    404: Failure.DENIED,
    408: Failure.TRANSIENT,
    409: Failure.TRANSIENT,
    413: Failure.CONTEXT,
    422: Failure.DENIED,
    425: Failure.TRANSIENT,
    429: Failure.RATE_LIMITED,
    500: Failure.TRANSIENT,
    529: Failure.TRANSIENT,
    302: Failure.UNCLEAR,
}


@pytest.mark.parametrize(("status", "failure"), STATUS.items())
def test_a_status_alone_decides(status: int, failure: Failure) -> None:
    assert classify(status) is failure
    assert classify(status, {"unknown_error", "400"}, {"APIStatusError", "litellm.APIError"}) is failure


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        ("insufficient_quota", Failure.FATAL),
        ("billing_error", Failure.FATAL),
        ("invalid_api_key", Failure.FATAL),
        ("model_not_found", Failure.FATAL),
        ("unsupported_country", Failure.FATAL),
        ("context_length_exceeded", Failure.CONTEXT),
        ("content_filter", Failure.FILTERED),
        ("responsibleaipolicyviolation", Failure.FILTERED),
    ],
)
def test_a_code_decides_where_the_status_leaves_it_open(code: str, failure: Failure) -> None:
    for status in (400, 403, 404, 422):
        assert classify(status, {code}) is failure
    # The server failed, whatever it says about the reason.
    assert classify(500, {code}) is Failure.TRANSIENT


def test_an_account_without_credit_is_not_a_rate_limit() -> None:
    assert classify(429, {"insufficient_quota"}) is Failure.FATAL
    assert classify(429, {"context_length_exceeded"}) is Failure.RATE_LIMITED


@pytest.mark.parametrize("status", [400, 403, 422])
@pytest.mark.parametrize(
    ("exception", "failure"),
    [
        ("litellm.ContextWindowExceededError", Failure.CONTEXT),
        ("litellm.ContentPolicyViolationError", Failure.FILTERED),
        ("litellm.AuthenticationError", Failure.DENIED),
        ("litellm.NotFoundError", Failure.DENIED),
    ],
)
def test_two_classes_of_litellm_decide(status: int, exception: str, failure: Failure) -> None:
    assert classify(status, exceptions={exception, "Exception"}) is failure


@pytest.mark.parametrize("is_sent", [True, False])
@pytest.mark.parametrize(
    "name",
    ["OSError", "ConnectError", "EndpointConnectionError", "APITimeoutError", "ProxyError", "TransportError"],
)
def test_a_failed_connection_is_transient_whether_anything_was_sent_or_not(name: str, is_sent: bool) -> None:
    for exceptions in ({name, "Exception"}, {name, "litellm.InternalServerError", "OpenAIError"}):
        assert classify(None, exceptions=exceptions, is_sent=is_sent) is Failure.TRANSIENT


@pytest.mark.parametrize("name", ["SSLCertVerificationError", "TooManyRedirects"])
def test_a_wrong_address_or_certificate_is_not_retried(name: str) -> None:
    exceptions = {name, "OSError", "APIConnectionError", "litellm.InternalServerError"}
    assert classify(None, exceptions=exceptions) is Failure.DENIED


@pytest.mark.parametrize(
    "names",
    [
        "litellm.APIConnectionError KeyError",
        "litellm.Timeout",
        "litellm.AuthenticationError",
        "OpenAIError",
        "",
    ],
)
def test_what_fails_before_anything_was_sent_concerns_the_request_or_all_requests(names: str) -> None:
    assert classify(None, exceptions=set(names.split()), is_sent=False) is Failure.DENIED


# litellm chooses its class by sentences, in which the answer's bytes can occur.
@pytest.mark.parametrize(
    "chosen", ["litellm.BadRequestError", "litellm.APIError", "litellm.ContextWindowExceededError"]
)
def test_a_damaged_answer_is_transient(chosen: str) -> None:
    for name in ("UnicodeDecodeError", "DecodingError"):
        assert classify(None, exceptions={name, chosen}) is Failure.TRANSIENT
    assert classify(None, exceptions={"UnicodeDecodeError"}, is_sent=False) is Failure.DENIED


def test_an_answer_that_cannot_be_read_is_unclear() -> None:
    assert classify(None, exceptions={"JSONDecodeError", "litellm.APIError"}) is Failure.UNCLEAR
    assert classify(None, exceptions={"litellm.ContextWindowExceededError"}) is Failure.CONTEXT
    assert classify(None, exceptions={"litellm.BadRequestError"}) is Failure.DENIED


@given(
    status=st.none() | st.integers(400, 599).filter(lambda status: status not in (401, 402)),
    exceptions=st.sets(
        st.sampled_from(
            [
                "litellm.AuthenticationError",
                "litellm.PermissionDeniedError",
                "litellm.NotFoundError",
                "litellm.BudgetExceededError",
                "litellm.ContextWindowExceededError",
                "litellm.ContentPolicyViolationError",
                "OSError",
            ]
        )
    ),
    is_sent=st.booleans(),
)
def test_no_class_that_litellm_may_have_chosen_by_a_sentence_stops_the_run(
    status: int | None, exceptions: set[str], is_sent: bool
) -> None:
    assert classify(status, exceptions=exceptions, is_sent=is_sent) is not Failure.FATAL


@pytest.mark.parametrize("failure", Failure)
def test_only_what_a_retry_can_change_is_retried(failure: Failure) -> None:
    assert ModelCallError(failure, "x").is_final is (failure not in RETRIED)
    assert ModelCallError(failure, "x", is_final=True).is_final
