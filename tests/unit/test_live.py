"""The live display: its text, when it is shown, and that it leaves other output as it is."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_super.cli import main
from pytest_super.kernel.providers.docker import image
from pytest_super.report import live
from pytest_super.report.live import LOG, TERMINAL, LiveDisplay, Progress, Style, activity_lines
from pytest_super.store.activity import Activity, Doing
from pytest_super.testing import FakeClock
from tests.terminals import COLUMNS, Screen, Terminal, terminal

PROGRESS = Progress(
    all=70,
    done=14,
    running=4,
    solved=9,
    errors=0,
    tokens=1_204_310,
    cost_usd=3.204,
    seconds=100.0,
    seconds_of_done=98.0,
)
TEXT = st.text(max_size=100)
LIMITED = Doing(what="model", since=0.0, step=12, waits_for="429, waits 20 s, try 3 of 8")


# The text


def test_a_line_of_totals_says_what_is_done_spent_and_left() -> None:
    assert str(PROGRESS) == "14/70 done, 4 running, 9 solved, 1.2M tokens, $3.20, 6 min left"
    begun = replace(PROGRESS, done=0, seconds_of_done=0.0, solved=0, tokens=0, cost_usd=None)
    assert str(begun) == "0/70 done, 4 running, 0 solved"
    large = replace(PROGRESS, all=799, done=500, errors=12, tokens=99_949_999, cost_usd=987.6)
    assert str(replace(large, seconds=61000.0, seconds_of_done=61000.0)) == (
        "500/799 done, 4 running, 9 solved, 12 errors, 99.9M tokens, $988, 10 h left"
    )


def test_a_trial_shows_its_step_its_repeats_and_what_its_model_waits_for() -> None:
    assert activity_lines({"mord[2]": LIMITED}, 45.0, 79) == [
        "  mord[2]  45 s  step 12, model: 429, waits 20 s, try 3 of 8"
    ]
    stuck = replace(LIMITED, repeats=57, waits_for="")
    assert str(stuck) == "step 12 after 57 equal ones, model"
    assert str(replace(stuck, repeats=9)) == "step 12, model"


@example("", "", "\t", 0.0, 80)
@given(TEXT, TEXT, TEXT, st.floats(-1e6, 1e6), st.integers(21, 200))
def test_no_text_controls_the_terminal_or_is_wider(
    name: str, what: str, reason: str, since: float, width: int
) -> None:
    doing = Doing(what=what, since=since, waits_for=reason, step=3)
    [line] = activity_lines({name: doing}, 0.0, width)
    assert len(line) <= width
    assert line.replace("…", "").isascii()
    assert line.isprintable()


# The activity


def test_a_part_ends_where_it_began_and_ctrl_c_leaves_it_as_it_was() -> None:
    told: list[Doing] = []
    activity = Activity(told.append, "sandbox start")
    activity.begin("agent", lambda: {"step": 3})
    with pytest.raises(KeyError), activity.doing("cell"):
        raise KeyError
    assert [str(doing) for doing in told] == [
        "sandbox start",
        "step 3, agent",
        "step 3, cell",
        "step 3, agent",
    ]
    with suppress(KeyboardInterrupt), activity.doing("model"):
        activity.waits_for("429, waits 20 s, try 3 of 8")
        raise KeyboardInterrupt
    assert str(activity.now) == "step 3, model: 429, waits 20 s, try 3 of 8"


# The display


class Display:
    """A display on a terminal or in a log, by a clock that only the test moves."""

    def __init__(self, shown: Terminal | int, style: Style) -> None:
        self.clock = FakeClock()
        self.lines: list[str] = ["1/2 done, 1 running", "  a  5 s  step 1, cell"]
        self.column = 0
        descriptor = shown if isinstance(shown, int) else shown.slave
        self.live = LiveDisplay(
            lambda _width: self.lines, descriptor, style, column=lambda: self.column, clock=self.clock
        )

    def after(self, seconds: float) -> None:
        self.clock.sleep(seconds)
        self.live.tick()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


def content(descriptor: int) -> str:
    return os.pread(descriptor, 10**6, 0).decode()


def test_a_log_gets_a_line_each_minute(log: int) -> None:
    display = Display(log, LOG)
    for _ in range(59):
        display.after(1.0)
    assert content(log) == ""
    display.after(1.0)
    assert content(log) == "1/2 done, 1 running | a  5 s  step 1, cell\n"
    for _ in range(60):
        display.after(1.0)
    assert content(log).count("\n") == 2


def test_nothing_is_shown_while_others_write_and_nothing_without_lines(log: int) -> None:
    display = Display(log, LOG)
    display.column = 12
    display.clock.sleep(60.0)
    display.live.touch()
    display.after(0.5)
    assert content(log) == ""
    shown, display.lines = display.lines, []
    display.after(60.0)
    assert content(log) == ""
    display.lines = shown
    display.after(60.0)
    # It does not continue a line of others.
    assert content(log).startswith("\n1/2 done")


def test_a_terminal_is_never_silent_for_10_seconds(log: int) -> None:
    display = Display(log, TERMINAL)
    display.after(2.0)
    assert display.lines[0] in content(log)
    display.lines = ["2/2 done"]
    display.after(1.0)
    assert display.lines[0] in content(log)


PIECES = st.lists(st.tuples(st.sampled_from([".", "F", "a.task.yaml ", "\n", " [ 50%]\n"]), st.booleans()))


@given(PIECES, st.lists(st.text("ab", min_size=1, max_size=30), min_size=1, max_size=5))
def test_what_others_write_stays_as_it_is_whatever_is_drawn_below(
    pieces: Sequence[tuple[str, bool]], lines: list[str]
) -> None:
    plain, drawn = Screen(), Screen()
    reader, writer = os.pipe()
    display = Display(writer, TERMINAL)
    display.lines = lines

    def shown() -> str:
        # Something is written in any case, so that reading does not wait.
        os.write(writer, b"\r" if not drawn.column else f"\r\x1b[{drawn.column}C".encode())
        return os.read(reader, 65536).decode()

    for piece, is_told in pieces:
        if is_told:
            display.live.touch()
            drawn.print(shown())
        for screen in (plain, drawn):
            # Pytest goes to the next line before a line is full.
            screen.print(piece if screen.column + len(piece) < COLUMNS else f"\n{piece}")
        display.column = drawn.column
        display.after(5.0)
        drawn.print(shown())
    display.live.touch()
    drawn.print(shown())
    os.close(reader)
    os.close(writer)
    if all(is_told for _, is_told in pieces):
        assert drawn.text == plain.text
    # A writer that does not tell of itself can leave a rest of the display behind its lines, but loses none.
    written = "".join(piece for piece, _ in pieces).split("\n")
    assert all(line.rstrip() in drawn.text for line in written if len(line) < COLUMNS)


# The subcommands


@pytest.fixture
def errors(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """A terminal for the standard error, on which silence of any length is filled."""
    monkeypatch.setattr(live, "TICK", 0.01)
    monkeypatch.setattr(live, "TERMINAL", Style(period=0.0, quiet=0.0, below_cursor=True))
    monkeypatch.setenv("TERM", "xterm")
    with terminal() as opened:
        yield opened


def run(errors: Terminal, *arguments: str) -> int:
    # Not in the fixture, after which pytest replaces the stream.
    with os.fdopen(os.dup(errors.slave), "w") as stream, pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(sys, "stderr", stream)
        return main(arguments)


def test_a_build_of_an_image_shows_its_step(errors: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    class Engine:
        def build(self, **_: Any) -> Iterator[dict[str, str]]:
            yield {"stream": "Step 4/9 : RUN pip install\n"}
            errors.wait_for("engine  0 s  Step 4/9 : RUN pip install")

        def prune_images(self, **_: Any) -> None: ...

    monkeypatch.setattr(image, "connect", Engine)
    assert run(errors, "image", "build") == 0
    assert "building the image" in errors.written
