"""The end of what a grader's command printed."""

import pytest

from pytest_super.grading.grader import LONGEST_LINE, MOST_LINES, last_lines

PYTEST = """\
tests/test_a.py:1: in <module>
    import nope
\x1b[1m\x1b[31mE   ModuleNotFoundError: No module named 'nope'\x1b[0m
=========== short test summary info ===========
ERROR tests/test_a.py
!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!
========= 1 error in 0.10s =========
"""


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("", ""),
        (" \n\n", ""),
        ("one\n\n two\n", "one | two"),
        ("a\nb\nc\nd\n", "b | c | d"),
        (
            "Traceback (most recent call last):\n  File x\nModuleNotFoundError: No module named 'a'\n",
            "ModuleNotFoundError: No module named 'a'",
        ),
        ("10 %\r100 %\ndone", "100 % | done"),
        ("KeyError\na\nb\nc", "KeyError"),
    ],
)
def test_the_last_lines_are_shown_as_a_terminal_shows_them(output: str, text: str) -> None:
    assert last_lines(output) == text


def test_an_exception_before_a_summary_is_shown() -> None:
    assert last_lines(PYTEST) == "ModuleNotFoundError: No module named 'nope'"


@pytest.mark.parametrize(
    "output", ["x" * 10**6, "\x1b[9999999C" * 10**5, "E " * 10**6, "a.b" * 10**5 + "Error:\n"]
)
def test_the_text_has_a_bounded_size(output: str) -> None:
    assert len(last_lines(output)) <= MOST_LINES * (LONGEST_LINE + 3)
