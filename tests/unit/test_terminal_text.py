from __future__ import annotations

import copy
import sys
import unicodedata
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.kernel import terminal_text as screen
from pytest_super.kernel.cell import CellResult, Outcome
from pytest_super.kernel.output import CellOutput
from pytest_super.kernel.terminal_text import as_shown, is_plain
from pytest_super.testing import FakeKernel
from pytest_super.trial.observation import observation_of

if TYPE_CHECKING:
    from types import FrameType

PRINTABLE = st.characters(exclude_categories=("Cc", "Cs"))
NARROW = PRINTABLE.filter(lambda char: unicodedata.east_asian_width(char) not in ("W", "F"))
PLAIN = st.text(PRINTABLE | st.sampled_from("\n\t"))
COLOURS = st.sampled_from(["\x1b[0m", "\x1b[1;38;5;208m", "\x1b[38:2::1:2:3m", "\x1b[m"])
NUMBERS = st.sampled_from(["", "0", "1", "2", "7", "3;4", "99999"])
HOSTILE_TEXT = st.lists(
    st.builds("\x1b[{}{}".format, NUMBERS, PRINTABLE)
    | st.text("a\r\n", max_size=4)
    | st.text("ab \t\n\r\b\x1b[]?;12ABCHJKPX78c\x07\x00\x85\x9b日é", max_size=8)
).map("".join)

SHOWN = {
    "colours are deleted": ("\x1b[31mred\x1b[0m and \x1b[1;38;5;208mbold\x1b[m", "red and bold"),
    "modes are deleted": ("\x1b[?25l\x1b[?2004hquiet\x1b[>4;1m", "quiet"),
    "a window title is deleted": ("\x1b]0;title\x07text", "text"),
    "a hyperlink leaves its text": ("\x1b]8;;http://x\x1b\\here\x1b]8;;\x1b\\!", "here!"),
    "a character set is deleted": ("\x1b(Bplain\x1b=", "plain"),
    "CRLF is a newline": ("a\r\nb\r\r\nc", "a\nb\nc"),
    "a bar leaves its last frame": ("10%|#   |\r50%|##  |\r100%|####|\n", "100%|####|\n"),
    "a shorter frame leaves the tail of a longer one": ("downloading\rdone", "doneloading"),
    "an erased line leaves no tail": ("downloading\r\x1b[Kdone", "done"),
    "erasing the whole line leaves the column": ("abc\x1b[2Kd", "   d"),
    "erasing to the start leaves the end": ("abcdef\x1b[3D\x1b[1K", "    ef"),
    "erasing at the end does nothing": ("Counting: 3\x1b[K\r\nnext", "Counting: 3\nnext"),
    "erasing by an unknown number does nothing": ("abc\r\x1b[7K", "abc"),
    "characters are erased in place": ("abcdef\r\x1b[2C\x1b[3X", "ab   f"),
    "a backspace goes back and deletes nothing": ("abc\b\b", "abc"),
    "what follows backspaces replaces": ("| \b\b/ \b\b- \b", "- "),
    "backspaces stop at the line's beginning": ("x\ny\b\b\bz", "x\nz"),
    "lower bars are drawn below": ("\n\x1b[A1\r\n2\x1b[A\r10\n20", "10\n20"),
    "a display of two lines is drawn anew": ("a 1\nb 1\n\x1b[2Aa 2\nb 2\n", "a 2\nb 2\n"),
    "cleared lines below the cursor are not shown": ("top\nlow\x1b[2K\x1b[A", "top"),
    "up past the first line stays there": ("a\nb\x1b[99A\rc", "c\nb"),
    "up keeps the column": ("abc\ndef\x1b[AX", "abcX\ndef"),
    "up and down to a line's beginning": ("ab\ncd\x1b[FX\x1b[EY", "Xb\nYd"),
    "down writes below": ("a\x1b[2Bb", "a\n\n b"),
    "down alone shows nothing": ("a\x1b[9B", "a"),
    "right leaves blanks": ("a\x1b[3Cb", "a   b"),
    "right alone leaves nothing": ("a\x1b[3C", "a"),
    "left writes over": ("abc\x1b[2DX", "aXc"),
    "to a column": ("abc\x1b[2GX\x1b[GY", "YXc"),
    "the far right is the edge": ("\x1b[999C\x1b[4D[ok]", " " * (screen.WIDTH - 5) + "[ok]"),
    "a long line can be reached to its end": ("x" * 500 + "\r\x1b[450CY", "x" * 450 + "Y" + "x" * 49),
    "a number of thousands of digits is a large one": ("ab\x1b[" + "9" * 5000 + "DX", "Xb"),
    "a saved position is returned to": ("ab\x1b7cd\x1b8X\x1b[sY\x1b[uZ", "abXZ"),
    "to a line and column": ("\x1b[2;3Hx\x1b[Hy\x1b[dz", "yz\n  x"),
    "erasing all below": ("a\nb\nc\x1b[2A\x1b[J", "a"),
    "erasing above is no matter": ("a\nb\x1b[1J\x1b[3J", "a\nb"),
    "a cleared screen stays above what comes after": ("old\x1b[H\x1b[2Jnew", "old\nnew"),
    "a screen drawn repeatedly is shown once": ("\x1b[H1\x1b[K\n2\n\x1b[H3\x1b[K\n4\n", "3\n4\n"),
    "a clear screen is not cleared again": ("\x1b[2J\x1b[2J\x1bcx", "x"),
    "nothing moves up into a cleared screen": ("old\x1bc\x1b[5Anew", "old\nnew"),
    "another screen stays too": ("a\x1b[?1049hedit\x1b[?1049lb", "a\nedit\nb"),
    "other control characters are dropped": ("a\x00b\x07c\x0bd\x0ce\x7ff\x85g", "abcdefg"),
    "a tab is kept": ("a\tb\r\n", "a\tb\n"),
    "a tab that is written into is blanks": ("a\tb\r123", "123     b"),
    "a tab within text is a movement": ("0123456789\r\tX", "01234567X9"),
    "a tab at the end of frames is kept": ("12\r34\tx", "34\tx"),
    "a wide character fills two cells": ("日本\rab", "ab本"),
    "half a wide character is none": ("日本\ra", "a 本"),
    "cutting a wide character leaves none": ("日本\x1b[D\x1b[K", "日 "),
    "an unfinished sequence at the end is dropped": ("a\x1b[12", "a"),
    "an unfinished string at the end is dropped": ("a\x1b]0;title", "a"),
    "a lone escape at the end is dropped": ("a\x1b", "a"),
    "of a malformed sequence the text stays": ("a\x1b[1é\x1b]0;b\nc", "a[1é]0;b\nc"),
    "a sequence is not made of the rests of others": ("ab\x1b\x1b[0m[2DX", "ab[2DX"),
    "lone surrogates are text": ("\ud800a\rb", "ba"),
}


@pytest.mark.parametrize(("text", "shown"), SHOWN.values(), ids=SHOWN)
def test_text_is_shown_as_on_a_terminal(text: str, shown: str) -> None:
    assert as_shown(text) == shown


@given(PLAIN)
def test_plain_text_comes_back_itself(text: str) -> None:
    assert is_plain(text)
    assert as_shown(text) is text


@given(HOSTILE_TEXT)
def test_only_newlines_and_tabs_are_left_of_control_characters(text: str) -> None:
    shown = as_shown(text)
    assert {char for char in shown if unicodedata.category(char) == "Cc"} <= {"\n", "\t"}
    assert as_shown(shown) == shown


@given(st.lists(PLAIN), COLOURS)
def test_colours_anywhere_change_no_text(pieces: list[str], colour: str) -> None:
    assert as_shown(colour.join(pieces)) == "".join(pieces)


@given(st.lists(PLAIN), HOSTILE_TEXT)
def test_lines_that_nothing_moves_up_to_stay_whatever_follows(lines: list[str], text: str) -> None:
    printed = "".join(f"{line}\n" for line in lines)
    assert as_shown(f"{printed}\x1bc{text}").startswith(printed.rstrip("\n"))


@given(st.lists(st.lists(st.text(NARROW), min_size=1)))
def test_frames_are_laid_over_each_other(lines: list[list[str]]) -> None:
    def over(shown: str, frame: str) -> str:
        return frame + shown[len(frame) :]

    expected = [reduce(over, frames) for frames in lines]
    assert as_shown("\n".join("\r".join(frames) for frames in lines)) == "\n".join(expected)


class Grid:
    """A terminal in its simplest form, with a cell for each position."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], str] = {}
        self.row = self.column = 0

    def write(self, text: str) -> None:
        for char in text:
            self.cells[self.row, self.column] = char
            self.column += 1

    def obey(self, final: str, count: int) -> None:
        match final:
            case "A":
                self.row = max(0, self.row - count)
            case "B":
                self.row += count
            case "C":
                self.column += count
            case "D" | "\b":
                self.column = max(0, self.column - count)
            case "K":
                self.cells = {at: char for at, char in self.cells.items() if not self.is_behind(at)}
            case "\r":
                self.column = 0
            case "\n":
                self.row, self.column = self.row + 1, 0

    def is_behind(self, at: tuple[int, int]) -> bool:
        return at[0] == self.row and at[1] >= self.column

    def lines(self) -> list[str]:
        rows = range(1 + max((row for row, _ in self.cells), default=0))
        columns = range(1 + max((column for _, column in self.cells), default=0))
        return ["".join(self.cells.get((row, column), " ") for column in columns) for row in rows]


MOVES = st.tuples(st.sampled_from(["A", "B", "C", "D", "K", "\b", "\r", "\n"]), st.integers(1, 3))


def printed(final: str, count: int) -> str:
    if final == "\b":
        return final * count
    return f"\x1b[{'' if final == 'K' else count}{final}" if final.isalpha() else final


def without_blank_ends(lines: list[str]) -> str:
    return "\n".join(line.rstrip(" ") for line in lines).rstrip("\n")


@given(st.lists(st.text("abc ", min_size=1) | MOVES))
def test_movements_lead_where_they_lead_on_a_grid(acts: list[str | tuple[str, int]]) -> None:
    grid, text = Grid(), ""
    for act in acts:
        if isinstance(act, str):
            grid.write(act)
            text += act
        elif grid.row < screen.HEIGHT - 4:
            grid.obey(*act)
            text += printed(*act)
    assert without_blank_ends(as_shown(text).split("\n")) == without_blank_ends(grid.lines())


def test_every_wide_character_fills_two_cells() -> None:
    # Versions of Python differ about code points without a character.
    chars = [char for char in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(char) != "Cn"]
    wide = [char for char in chars if unicodedata.east_asian_width(char) in ("W", "F")]
    assert len(wide) > 90_000
    # Nearly all of them lie in a few long ranges. Every eleventh finds each range.
    assert set(as_shown("\n".join(f"{char}|\rab" for char in wide[::11])).split("\n")) == {"ab|"}


class CountedCells(bytearray):
    """Counts the bytes that are read, written or moved."""

    moved = 0

    def __init__(self, source: bytes = b"") -> None:
        super().__init__(source)
        CountedCells.moved += len(source)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        CountedCells.moved += len(found)
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        start, stop, _ = key.indices(len(self))
        shifted = len(self) - stop if len(value) != stop - start else 0
        CountedCells.moved += len(value) + shifted
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        CountedCells.moved += len(self) - key.indices(len(self))[1]
        super().__delitem__(key)

    def __iadd__(self, other: Any) -> Any:  # type: ignore[misc]
        CountedCells.moved += len(other)
        return super().__iadd__(other)


def work_for(text: str) -> int:
    """The lines run, bytes of cells moved and characters made in order to show `text`."""
    ran = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal ran
        if frame.f_globals["__name__"] != screen.__name__:
            return None
        ran += event == "line"
        return trace

    moved, before = CountedCells.moved, sys.gettrace()
    sys.settrace(trace)
    try:
        shown = as_shown(text)
    finally:
        sys.settrace(before)
    return ran + CountedCells.moved - moved + len(shown)


HOSTILE = {
    "returns": lambda n: "x" * n + "\r" * n,
    "short frames": lambda n: "x\r" * n,
    "short frames over a long line": lambda n: "x" * 50 * n + "\ry" * n,
    "growing and erased": lambda n: ("x" * 50 + "\r\x1b[K") * n,
    "backspaces": lambda n: "x" * 50 * n + "\b" * 50 * n + "a\b\x1b[K" * n,
    "up": lambda n: "\n" * n + "\x1b[A" * n,
    "up and down in lines": lambda n: "line\n" * n + "\x1b[9999Ax\x1b[9999By" * n,
    "far right": lambda n: "\x1b[999999999Cx\n" * n,
    "far right and down": lambda n: "x" * 50 * n + "\x1b[999999999Bx" * n,
    "long line saved, shorter ones filled": lambda n: "x" * 50 * n + "\x1b7" + "\n\x1b8\x1b[Bx" * n,
    "to the end of a long line": lambda n: "x" * 50 * n + "\x1b[Gx\x1b[999999999Gy" * n,
    "long line erased to the cursor": lambda n: "x" * 50 * n + "\x1b7" + "\rx\x1b8\x1b[1K" * n,
    "long line erased by characters": lambda n: "x" * 50 * n + "\r" + "\x1b[999999X" * n,
    "long line erased whole": lambda n: "x" * 50 * n + "\x1b[2Ky" * n,
    "screens": lambda n: "x\x1b[2J\x1b[24By" * n,
    "screens erased below": lambda n: "\x1b[24Bx\x1b[H\x1b[J" * n,
    "tabs": lambda n: "\t" * n + "\r" + "x\t" * n,
    "wide": lambda n: "日本\r語" * n,
    "unfinished strings": lambda n: "\x1b]" * n,
    "unfinished sequences": lambda n: "\x1b[" * n,
    "digits": lambda n: "\x1b[" + "9" * n + "A" + ";" * n,
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_work_is_in_proportion_to_the_text(hostile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "bytearray", CountedCells, raising=False)
    once, twice = work_for(hostile(200)), work_for(hostile(400))
    assert twice <= 2.1 * once + 1000
    assert once <= 400 * len(hostile(200)) + 1000


def test_long_hostile_text_is_shown() -> None:
    assert as_shown("x" * 10**7 + "\r" * 10**6 + "y") == "y" + "x" * (10**7 - 1)


def stream(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def display(text: str) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {"text/plain": text}, "metadata": {}}


def observed(*outputs: dict[str, Any], outcome: Outcome = Outcome.OK) -> str:
    return observation_of(CellResult(outcome=outcome, text="not used", outputs=list(outputs)))


def test_an_observation_shows_what_bars_left_and_the_outputs_keep_all() -> None:
    result = FakeKernel().execute("print('downloading\\rdone\\x1b[31m!')")
    outputs = copy.deepcopy(result.outputs)
    assert observation_of(result) == "done!oading\n"
    assert result.outputs == outputs
    assert "\r" in outputs[0]["text"]


def test_an_observation_of_a_result_without_outputs_is_its_text_as_shown() -> None:
    assert observation_of(CellResult(outcome=Outcome.OK, text="a\rb")) == "b"
    assert observation_of(CellResult(outcome=Outcome.OK)) == ""


def test_a_stream_writes_over_no_line_of_the_other_whatever_order_they_came_in() -> None:
    bar, loss = stream("50%\n\r inner 10%", "stderr"), stream("loss 0.5\n")
    shown = observed(bar, loss, stream("\x1b[A\r51%|##|\n\r inner 20%\x1b[K", "stderr"))
    assert shown == "50%\n inner 10%\nloss 0.5\n51%|##|\n inner 20%"


def test_plain_streams_go_on_where_the_other_ended() -> None:
    streams = [stream("one, "), stream("two", "stderr"), stream(", three\n")]
    assert observed(*streams, stream("3%\r4%", "stderr")) == "one, two, three\n4%"


def test_a_display_has_lines_of_its_own_that_no_stream_moves_into() -> None:
    shown = observed(stream("1%\r2%"), display("\x1b[Afigure"), stream("\x1b[5Aend"), display("last"))
    assert shown == "2%\nfigure\nend\nlast\n"


def test_how_a_cell_ended_is_told_below_what_is_shown() -> None:
    interrupted = observed(stream("1%\r2%\n\n"), outcome=Outcome.INTERRUPTED)
    assert interrupted == "2%\n[The cell was interrupted.]"


def test_nothing_after_a_gap_moves_up_into_what_stood_before_it() -> None:
    output = CellOutput()
    output.add("stream", {"name": "stdout", "text": "head\n" * 100_000})
    output.add("stream", {"name": "stdout", "text": "\x1b[999999Aup"})
    shown = observed(*output.outputs())
    before, gap, after = shown.partition("characters left out ...]\n")
    assert before.startswith("head\n" * 20_000 + "\n[... ")
    assert gap
    assert after.startswith("up")
