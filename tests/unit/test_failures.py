"""What a failed model call means, by its status and codes alone."""

import pytest

from pytest_super.model.completion import RETRIED, Failure, ModelCallError, classify

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
    assert classify(status, {"unknown_error", "400"}) is failure


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        ("invalid_api_key", Failure.FATAL),
        ("model_not_found", Failure.FATAL),
        ("context_length_exceeded", Failure.CONTEXT),
        ("content_filter", Failure.FILTERED),
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


@pytest.mark.parametrize("failure", Failure)
def test_only_what_a_retry_can_change_is_retried(failure: Failure) -> None:
    assert ModelCallError(failure, "x").is_final is (failure not in RETRIED)
    assert ModelCallError(failure, "x", is_final=True).is_final
