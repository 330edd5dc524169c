import copy
import time
import unicodedata
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.kernel.cell import CellResult, Outcome
from pytest_super.kernel.output import CellOutput, readable
from pytest_super.kernel.terminal_text import WIDTH, as_shown, is_plain
from pytest_super.testing import FakeKernel
from pytest_super.trial.observation import observation_of

PRINTABLE = st.characters(exclude_categories=("Cc", "Cs"))
PLAIN = st.text(PRINTABLE | st.sampled_from("\n\t"))
NUMBERS = st.sampled_from(["", "0", "1", "2", "7", "3;4", "99999"])
HOSTILE_TEXT = st.lists(
    st.builds("\x1b[{}{}".format, NUMBERS, PRINTABLE)
    | st.text("a\r\n", max_size=4)
    | st.text("ab \t\n\r\b\x1b[]?;12ABCHJKP78c\x07\x00\x85\x9b日é", max_size=8)
).map("".join)

SHOWN = {
    "colours are deleted": ("\x1b[31mred\x1b[0m and \x1b[1;38;5;208mbold\x1b[m", "red and bold"),
    "a window title is deleted": ("\x1b]0;title\x07text", "text"),
    "a hyperlink leaves its text": ("\x1b]8;;http://x\x1b\\here\x1b]8;;\x1b\\!", "here!"),
    "CRLF is a newline": ("a\r\nb\r\r\nc", "a\nb\nc"),
    "a bar leaves its last frame": ("10%|#   |\r50%|##  |\r100%|####|\n", "100%|####|\n"),
    "a shorter frame leaves the tail of a longer one": ("downloading\rdone", "doneloading"),
    "erasing the whole line leaves the column": ("abc\x1b[2Kd", "   d"),
    "a backspace goes back and deletes nothing": ("abc\b\b", "abc"),
    "what follows backspaces replaces": ("| \b\b/ \b\b- \b", "- "),
    "lower bars are drawn below": ("\n\x1b[A1\r\n2\x1b[A\r10\n20", "10\n20"),
    "a display of two lines is drawn anew": ("a 1\nb 1\n\x1b[2Aa 2\nb 2\n", "a 2\nb 2\n"),
    "cleared lines below the cursor are not shown": ("top\nlow\x1b[2K\x1b[A", "top"),
    "up past the first line stays there": ("a\nb\x1b[99A\rc", "c\nb"),
    "up and down to a line's beginning": ("ab\ncd\x1b[FX\x1b[EY", "Xb\nYd"),
    "up and down keep the column": ("abc\nd\x1b[AX\x1b[BY", "aXc\nd Y"),
    "right leaves blanks": ("a\x1b[3Cb", "a   b"),
    "to a column": ("abc\x1b[2GX\x1b[GY", "YXc"),
    "the far right is the edge": ("\x1b[999C\x1b[4D[ok]", " " * (WIDTH - 5) + "[ok]"),
    "a long line can be reached to its end": ("x" * 500 + "\r\x1b[450CY", "x" * 450 + "Y" + "x" * 49),
    "a number of thousands of digits is a large one": ("ab\x1b[" + "9" * 5000 + "DX", "Xb"),
    "erasing all below": ("a\nb\nc\x1b[2A\x1b[J", "a"),
    "screens are shown one after the other": ("old\n\x1b[H\x1b[2J\x1b[3Jnew\n\x1bcx", "old\nnew\nx"),
    "other control characters are dropped": ("a\x00b\x07c\x0bd\x0ce\x7ff\x85g", "abcdefg"),
    "an unfinished sequence at the end is dropped": ("a\x1b[12", "a"),
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


@given(st.lists(st.lists(st.text(PRINTABLE), min_size=1)))
def test_frames_are_laid_over_each_other(lines: list[list[str]]) -> None:
    def over(shown: str, frame: str) -> str:
        return frame + shown[len(frame) :]

    expected = [reduce(over, frames) for frames in lines]
    assert as_shown("\n".join("\r".join(frames) for frames in lines)) == "\n".join(expected)


HOSTILE = {
    "short frames": "x\r" * 200_000,
    "backspaces": "x" * 200_000 + "\b" * 100_000 + "a\b\x1b[K" * 20_000,
    "up and down": "line\n" * 40_000 + "\x1b[9999Ax\x1b[9999By" * 12_000,
    "from a long line to short ones": "x\n" * 50_000 + "x" * 200_000 + "\x1b[Ay" * 25_000,
    "unfinished sequences": "\x1b[" * 200_000,
    "digits": "\x1b[" + "9" * 200_000 + "A" + ";" * 200_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_time_and_size_are_in_proportion_to_the_text(text: str) -> None:
    # A cost that grows with the square of this text takes minutes.
    start = time.process_time()
    shown = as_shown(text)
    assert time.process_time() - start < 10
    assert len(shown) <= WIDTH / 10 * len(text)


def stream(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def display(text: str) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {"text/plain": text}, "metadata": {}}


def observed(*outputs: dict[str, Any], outcome: Outcome = Outcome.OK) -> str:
    return observation_of(CellResult(outcome=outcome, text=readable(list(outputs))))


def test_an_observation_shows_what_bars_left_and_the_outputs_keep_all() -> None:
    result = FakeKernel().execute("print('downloading\\rdone\\x1b[31m!')")
    outputs = copy.deepcopy(result.outputs)
    assert observation_of(result) == "done!oading\n"
    assert result.outputs == outputs
    assert "\r" in outputs[0]["text"]


def test_a_stream_writes_over_no_line_of_the_other_whatever_order_they_came_in() -> None:
    bar, loss = stream("50%\n\r inner 10%", "stderr"), stream("loss 0.5\n")
    shown = observed(bar, loss, stream("\x1b[A\r51%|##|\n\r inner 20%\x1b[K", "stderr"))
    assert shown == "50%\n inner 10%\nloss 0.5\n51%|##|\n inner 20%"


def test_a_display_has_lines_of_its_own_that_no_stream_moves_into() -> None:
    shown = observed(stream("1%\r2%"), display("\x1b[Afigure"), stream("\x1b[5Aend"), display("last"))
    assert shown == "2%\nfigure\nend\nlast\n"
    assert observed(stream("plain"), display("\x1b[Afigure")) == "plain\nfigure\n"


def test_nothing_after_a_gap_moves_up_into_what_stood_before_it() -> None:
    output = CellOutput()
    output.add("stream", {"name": "stdout", "text": "head\n" * 100_000})
    output.add("stream", {"name": "stdout", "text": "\x1b[999999Aup"})
    shown = observed(*output.outputs())
    before, gap, after = shown.partition("characters left out ...]\n")
    assert before.startswith("head\n" * 20_000 + "\n[... ")
    assert gap
    assert after.startswith("up")
