"""What was submitted in place of the gold answer: only what differs, in a bounded size."""

from typing import Any

import pytest

from pytest_super.metrics.accuracy import difference

GOLD = {"test": {"f1": 0.5, "n": 7}, "names": ["a", "b"]}
F1 = "test.f1 is 0.2, not 0.5; "
NUMBERS = "[1] is missing, not 2; [2] is missing, not 3; [3] is missing, not 4; "
DEEP: Any = []
for _ in range(5000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("gold", "given", "text"),
    [
        (42, 0, "the answer is 0, not 42"),
        (42, "42", 'the answer is "42", not 42'),
        (42, 42.001, ""),
        (True, 1, "the answer is 1, not true"),
        (GOLD, {**GOLD, "more": 1}, ""),
        (GOLD, {"test": {"f1": 0.2, "n": 7}, "names": ["a"]}, F1 + 'names[1] is missing, not "b"'),
        (GOLD, {**GOLD, "test": {"f1": 0.2, "n": {}}}, F1 + "test.n is {}, not 7"),
        ([1, 2, 3, 4, 5], [1], NUMBERS + "and 1 more"),
        ([1, 2, 3, 4], [1], NUMBERS.removesuffix("; ")),
        ("x", "y" * 60, f'the answer is "{"y" * 60}", not "x"'),
        ("x", "y" * 10**6, f'the answer is "{"y" * 59}…", not "x"'),
        (1, 10**100, f"the answer is 1{'0' * 58}…, not 1"),
        ({"k" * 99: 1}, DEEP, f"{'k' * 59}… is missing, not 1"),
        ([[1]], DEEP, "[0][0] is a list, not 1"),
    ],
)
def test_only_wrong_values_are_told(gold: Any, given: Any, text: str) -> None:
    assert difference(gold, given, 0.01) == text


def test_a_number_that_python_does_not_write_is_told_in_words() -> None:
    assert difference(1, 10**5000, 0.01) == "the answer is a very long number, not 1"
