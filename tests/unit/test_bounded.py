"""Files that an agent wrote are read in a process with limits; whatever is wrong with them is a reason."""

import ast
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_super.errors import InfrastructureError
from pytest_super.functions import bounded
from pytest_super.functions.acts import Act, Acts
from pytest_super.functions.bounded import acts_of, compile_error, function_texts, splice
from pytest_super.functions.source import SourceError
from pytest_super.functions.splicing import spliced

ORIGINAL = b'''\
import os

LIMIT = 3


@os.path.isabs
def f(x):
    """Doc."""
    return x


class A:
    def g(self, y=1):
        return [y for y in range(LIMIT)]
'''
F, TARGETS = b"def f(x):\n    return 1\n", ["f", "A.g"]


@pytest.mark.parametrize(
    "encoding", ["rot13", "hex", "zip", "bz2", "punycode", "utf-7", "undefined", "x", "cp1252"]
)
def test_no_other_encoding_than_a_few_is_read(encoding: str) -> None:
    with pytest.raises(
        SourceError, match=r"a\.py: (its encoding, .*, is neither|it cannot be parsed: unknown)"
    ):
        spliced("a.py", ORIGINAL, f"# coding: {encoding}\n".encode() + F, ["f"])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "ascii", "latin-1", "iso-8859-1"])
def test_these_encodings_are_read(encoding: str) -> None:
    changed = f"# coding: {encoding}\n{F.decode()}".encode(encoding)
    assert b"return 1" in spliced("a.py", ORIGINAL, changed, ["f"]).data


def test_the_encoding_of_the_original_is_read() -> None:
    text = "# coding: cp1252\ndef f(x):\n    return '€'\n"
    original = text.replace("€", "").encode("cp1252")
    assert spliced("a.py", original, text.encode("cp1252"), ["f"]).data == text.encode("cp1252")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (F + b"\0", "null bytes"),
        (F + b"# \xff", "cannot be parsed"),
        (b"def f(x):\n    return '\xed\xa0\x80'\n", "cannot be parsed"),
        (b"def f(x):\n    return " + b"-" * 9999 + b"1\n", "cannot be parsed"),
        (b"def f(x):\n    return " + b"(" * 9999 + b"\n", "cannot be parsed"),
        (b"def f(x):\n    return a" + b".a" * 20_000 + b"\n", "cannot be parsed"),
        (b"def f(x):\n" + b"".join(b" " * n + b"if x:\n" for n in range(1, 200)), "cannot be parsed"),
        (F + b"0\n" * 2**16, "more than .*, twice the original's and 64 KiB"),
        (b"", "the function `f` is not there"),
        (F * 2, "the function `f` is not there"),
    ],
    ids=["null", "bytes", "surrogate", "minus", "open", "dots", "blocks", "large", "empty", "twice"],
)
def test_what_cannot_be_read_is_refused_with_a_reason(changed: bytes, why: str) -> None:
    with pytest.raises(SourceError, match=f"a.py.*{why}"):
        splice("a.py", ORIGINAL, changed, ["f"])


@pytest.mark.parametrize(
    "decorator", [b"@\\\n  staticmethod\n    ", b"@(\n# @x\n  staticmethod)\n    ", b"@staticmethod\n    "]
)
def test_a_body_can_begin_with_any_decorator(decorator: bytes) -> None:
    found = spliced("a.py", F, b"def f(x):\n    " + decorator + b"def g(): return 2\n    return g()\n", ["f"])
    assert decorator in found.data


def a_mutation(draw: Callable[[st.SearchStrategy[Any]], Any], data: bytes) -> bytes:
    piece = st.sampled_from(
        [b"@\\\n", b"\\\n", b"\0", b"\r", b"\x0c", b"\t", b'"""', b"# coding: hex\n", b"(", b"    "]
    )
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(data)))
        end = draw(st.integers(begin, min(begin + 20, len(data))))
        data = data[:begin] + draw(piece | st.binary(max_size=6)) + data[end:]
    return data


@st.composite
def files(draw: Callable[[st.SearchStrategy[Any]], Any]) -> bytes:
    """Any bytes, or the file with some changes."""
    return bytes(draw(st.binary(max_size=200))) if draw(st.booleans()) else a_mutation(draw, ORIGINAL)


@settings(deadline=None)
@given(files())
def test_any_file_is_spliced_or_refused(changed: bytes) -> None:
    try:
        found = spliced("a.py", ORIGINAL, changed, TARGETS)
    except SourceError:
        return
    kept = ast.parse(found.data)
    # Whatever is taken over, the rest of the original is there.
    expected = [ast.dump(one) for one in ast.parse(ORIGINAL).body if isinstance(one, ast.Import | ast.Assign)]
    assert [one for one in map(ast.dump, kept.body) if one in expected] == expected


def test_nothing_of_it_is_parsed_in_the_own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*_: object, **__: object) -> None:
        raise AssertionError("parsed here")

    monkeypatch.setattr(ast, "parse", parse)
    monkeypatch.setattr("builtins.compile", parse)
    assert splice("a.py", F, F, ["f"]).is_alike
    assert function_texts("a.py", F, ["f"]) == [F.decode()]
    assert compile_error("a.py", F) is None


def test_what_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "PROCESSOR_SECONDS", 1)
    with pytest.raises(SourceError, match=r"a\.py: it takes more than 1 s or \d+ MiB to read"):
        splice("a.py", F + b"x = 1\n" * 2000, F + b"0\n" * 30_000, ["f"])


def test_behind_a_file_that_takes_too_long_none_passes_as_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "PROCESSOR_SECONDS", 1)
    file, small = {"name": "a.py", "original": b"", "targets": []}, b"import os\nos._exit(0)\n"
    first, *others = acts_of({**file, "changed": data} for data in (small, b"0\n" * 250_000, small))
    assert first == Acts([], [Act(2, "calls os._exit")], [], [])
    assert [str(one).partition(" s or ")[0] for one in others] == ["a.py: it takes more than 1"] * 2


def test_what_takes_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MEMORY", 64 * 2**20)
    monkeypatch.setattr(bounded, "MEMORY_OF_A_BYTE", 0)
    comment = b"#" * 200_000 + b"\n"
    assert splice("a.py", comment + F, comment + F, ["f"]).is_alike
    with pytest.raises(SourceError, match=r"too large|takes more than"):
        splice("a.py", comment + F, F + b"0\n" * 200_000, ["f"])


def test_a_process_that_does_not_start_is_not_the_agents_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(bounded, "PROGRAM", "import sys; sys.exit('no memory')")
        with pytest.raises(InfrastructureError, match="did not start: no memory"):
            splice("a.py", F, F, ["f"])
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(InfrastructureError, match="cannot start"):
        splice("a.py", F, F, ["f"])
