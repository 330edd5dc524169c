"""Values read from stored steps."""

from __future__ import annotations

import pytest

from pytest_super.store.step_values import submission_of


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ('{"a": [1.5, true, null]}', {"a": [1.5, True, None]}),
        ("{'a': [1.5, True, None]}", {"a": [1.5, True, None]}),
        ("{'a': inf, 'b': -inf}", {"a": float("inf"), "b": float("-inf")}),
        ("None", None),
        ("null", None),
        ("the cat sat", "the cat sat"),
        ('submit {"a": 1}', {"a": 1}),
        ("submit {a: 1}", "{a: 1}"),
    ],
)
def test_a_submission_is_read_as_json_or_as_python_writes_the_value(content: str, value: object) -> None:
    assert submission_of(content) == value
