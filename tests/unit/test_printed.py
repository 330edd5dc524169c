"""What is kept of an agent's prints: the beginning, the end, and how much lay between."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.session import printed
from pytest_super.session.printed import BoundedStream

KEPT = 10


def captured(writes: list[str]) -> str:
    """What comes of them where KEPT characters of each end are kept."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
        for name, value in {"HEAD": KEPT, "TAIL": KEPT, "PIECE": 3}.items():
            patch.setattr(printed, name, value)
        stream = BoundedStream("stdout")
        for text in writes:
            assert stream.write(text) == len(text)
        stream.finish()
        return out.getvalue()


@given(st.lists(st.text("abc\n", max_size=25), max_size=30))
def test_both_ends_are_kept_and_what_is_left_out_is_counted(writes: list[str]) -> None:
    text, kept = "".join(writes), captured(writes)
    if len(text) <= 2 * KEPT:
        assert kept == text
    else:
        note = f"\n[... {len(text) - 2 * KEPT} characters left out ...]\n"
        assert kept == text[:KEPT] + note + text[-KEPT:]


def test_bytes_are_written_as_text() -> None:
    with redirect_stdout(io.StringIO()) as out:
        stream = BoundedStream("stdout")
        stream.buffer.write("é\n".encode() + b"\xff")
        stream.finish()
    assert out.getvalue() == "é\n\N{REPLACEMENT CHARACTER}"


def test_half_of_a_surrogate_pair_at_the_end_harms_nothing() -> None:
    assert captured(["x" * KEPT, "\ud83d"]).endswith("?")


def test_a_logger_that_has_kept_it_writes_to_the_stream_that_is_there_later() -> None:
    with redirect_stdout(io.StringIO()) as first:
        kept = BoundedStream("stdout")
        print("early", file=kept)
        kept.finish()
    with redirect_stdout(io.StringIO()) as later:
        print("late", file=kept)
    assert (first.getvalue(), later.getvalue()) == ("early\n", "late\n")


def test_what_the_standard_stream_tells_of_itself_is_told() -> None:
    with redirect_stdout(io.TextIOWrapper(io.BytesIO(), "latin-1")):
        stream = BoundedStream("stdout")
        assert (stream.encoding, stream.isatty(), stream.writable()) == ("latin-1", False, True)
        with pytest.raises(io.UnsupportedOperation):
            stream.fileno()


def test_one_that_took_the_place_of_the_later_stream_writes_to_its_own() -> None:
    with redirect_stdout(io.StringIO()) as first:
        kept = BoundedStream("stdout")
        kept.finish()
        with redirect_stdout(kept):
            print("late")
    assert first.getvalue() == "late\n"


def test_it_can_what_a_standard_stream_can() -> None:
    with redirect_stdout(io.TextIOWrapper(io.BytesIO())) as out:
        stream = BoundedStream("stdout")
        stream.reconfigure(errors="replace")
        assert out.errors == "replace"
        assert not hasattr(stream, "no_such_thing")
