"""YAML that we write: read back as it was, by our reader and by others, and readable."""

import math
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pytest_super.authoring.paper_proposals import regex_of, results_of
from pytest_super.tasks.yaml_reader import Reader, documents
from pytest_super.tasks.yaml_writer import to_yaml

# What YAML gives a meaning to, or has ends of lines in.
HOSTILE = (
    "\n\n\n  \t-:#'\"|>?&*!%@`{}[],~<=\\\r\x00\x07\x1b\x7f\x85\xa0\u2028\u2029\ufeff\uffff😀0123e.+noyNull"
)
TEXT = st.one_of(
    st.text(alphabet=HOSTILE),
    st.text(),
    st.lists(
        st.sampled_from(["", " ", "  a", "a", "\ta", "# a", "- a", "a: b", "%a", "---", "...", "a "])
    ).map("\n".join),
    st.lists(st.sampled_from(["a" * 60, "b" * 1500, " ", "\n"]), max_size=6).map("".join),
)
SHORT = st.one_of(st.text(alphabet=HOSTILE, max_size=4), st.sampled_from(["a\n  b\n", " \n a", "b" * 1500]))
VALUES = st.recursive(
    st.one_of(SHORT, st.none(), st.booleans(), st.integers(), st.floats()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(SHORT, inner, max_size=3)),
    max_leaves=6,
)


def read(text: str) -> Any:
    (node,) = documents(text)
    return Reader().value(node)


def same(one: Any, other: Any) -> bool:
    """Equal, of equal types, not a number being itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(value=st.dictionaries(SHORT, VALUES, min_size=1, max_size=3))
@example(value={"a": [[], {}, [[{"b": "x\n y\n"}]]]})
@example(value={"a" * 2000: {"b" * 2000: "c\nd"}})
@example(value={"<<": 1e-5, "no": 1e22, "1.10": -0.0})
def test_what_is_written_is_read_back(value: dict[str, Any]) -> None:
    # Of those the reader takes some values as text, whatever they look like.
    value = {"a": value}
    assert same(read(to_yaml(value)), value)


@settings(deadline=None)
@given(text=TEXT)
@example(text="\n")
@example(text="\n\n a\n\n")
def test_texts_are_texts_to_our_reader_and_to_others(text: str) -> None:
    value = {"a": text, "b": [text, {text: text}], "c": 1}
    written = to_yaml(value)
    assert read(written) == value
    assert yaml.safe_load(written) == value


def test_texts_of_several_lines_are_blocks() -> None:
    value = {
        "query": "Train it.\n\n  Report {}.\n",
        "cells": ["!ls", "import a  \n\n\ta.b()"],
        "pattern": r"a: \d+",
    }
    assert to_yaml(value) == (
        "query: |\n"
        "  Train it.\n"
        "\n"
        "    Report {}.\n"
        "cells:\n"
        "  - '!ls'\n"
        "  - |-\n"
        "    import a  \n"
        "\n"
        "    \ta.b()\n"
        "pattern: 'a: \\d+'\n"
    )


def test_half_of_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogate"):
        to_yaml({"a": "\ud800"})


def test_thirty_six_values_that_one_pattern_names_take_ten_lines() -> None:
    regex = regex_of(r"^(?P<name>[A-Z]{2})-F: .*?(?P<value>-?\d[-.\de]*)", r"situation (\d)")
    names = [f"{block} {name}" for block in range(6) for name in ("GG", "GN", "II", "AG", "IG", "AI")]
    (entry,) = results_of({name: [1.5e-05, 1.5e-05] for name in names}, regex)
    text = to_yaml({"result": [entry]})
    assert text.count("\n") == 1 + 10
    assert read(text) == {"result": [entry]}
