"""Values read from stored steps."""

from __future__ import annotations

import pytest

from pytest_super.store.step_values import LONGEST_LITERAL, submission_of, value_of
from pytest_super.store.trajectory import Action, Step


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


def result(text: str) -> Step:
    output = {"output_type": "execute_result", "data": {"text/plain": text}}
    return Step(number=1, origin="agent", action=Action(type="execute"), outputs=[output])


@pytest.mark.parametrize("text", ['{"a": null}', "{'a': None}", " {'a': None}\n"])
def test_a_cells_value_is_read_as_json_or_as_python_writes_it(text: str) -> None:
    assert value_of(result(text)) == {"a": None}


@pytest.mark.parametrize("text", ["<object>", "{1, 2}", "{'a': nan}", "NaN", "b'x'", "[" * 100_000])
def test_a_cells_value_that_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        value_of(result(text))


def test_a_long_literal_is_read_as_text() -> None:
    """Its syntax tree would take hundreds of times its memory."""
    rows = "[" + "None," * (LONGEST_LITERAL // 5 - 1)
    assert submission_of(rows + "]") == [None] * (LONGEST_LITERAL // 5 - 1)
    assert submission_of(rows + "None," * 2 + "]") == rows + "None," * 2 + "]"
