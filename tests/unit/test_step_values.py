"""Values read from stored steps."""

import tracemalloc

import pytest

from pytest_super.store.step_values import parse_value, submission_of


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
        ("{22896: 9}", "{22896: 9}"),
        ("{'a': (1, 2)}", "{'a': (1, 2)}"),
        ("{1, 2}", "{1, 2}"),
    ],
)
def test_a_submission_is_read_as_json_or_as_python_writes_the_value(content: str, value: object) -> None:
    assert submission_of(content) == value


def test_a_literal_of_any_size_takes_little_memory() -> None:
    tracemalloc.start()
    with pytest.raises(ValueError, match="neither JSON nor a Python literal"):
        parse_value("[" + "1+1," * 2**19 + "]")
    assert tracemalloc.get_traced_memory()[1] < 32 * 2**20
    tracemalloc.stop()
