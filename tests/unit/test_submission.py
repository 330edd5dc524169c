"""Submissions are JSON values."""

import json

import pytest

from pytest_super.agents.asking import parse_submission


@pytest.mark.parametrize("value", [None, 0, "a", [], {"a": {"b": [1.5, True]}}, {"é": "\n"}])
def test_a_submission_is_any_json_value(value: object) -> None:
    assert parse_submission(f" {json.dumps(value)}\n") == value


@pytest.mark.parametrize(
    "content",
    ["{'a': 1}", "{a: 1}", "None", "The accuracy is 0.6.", '{"a": 1} {"b": 2}', "9" * 5000, "[" * 10**5],
)
def test_a_submission_that_is_no_json_is_refused(content: str) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        parse_submission(content)
