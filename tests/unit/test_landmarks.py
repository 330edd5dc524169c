import itertools
import re
import sys
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.metrics.evidence import Evidence, Landmark
from pytest_super.metrics.landmarks import LANDMARKS
from pytest_super.metrics.matching.landmark_matcher import LandmarkMatcher
from pytest_super.metrics.matching.patterns import required_literals
from pytest_super.metrics.matching.plain_text import PlainText, plain
from pytest_super.tasks.task import Task

# Takes exponential time in any engine that backtracks.
CATASTROPHE = r"(?:\w|[a-z]|\S)+!"


def hits(patterns: Sequence[str], *chunks: str, window: int = 32_768) -> list[bool]:
    matcher = LandmarkMatcher(patterns, window=window)
    run_cell(matcher, chunks)
    return matcher.hits


def run_cell(matcher: LandmarkMatcher, chunks: Iterable[str], source: str = "", *, step: int = 0) -> None:
    matcher.begin_cell(source, step=step)
    for chunk in chunks:
        matcher.feed(chunk)
    matcher.end_cell()


@pytest.mark.parametrize(
    ("pattern", "output"),
    [
        ("training done metrics", "training done\r\nmetrics"),
        ("training done metrics", "training done\nmetrics"),
        ("training done metrics", "training\r\r\ndone\nmetrics"),
        ("training done metrics", "training\x1b[1m \x1b[0mdone\r\x1b[K\nmetrics"),
        ("done", "\x1b]0;a title\x07do\x1b[38;5;196mne"),
        ("done", "do\x1b]8;;http://example.org\x1b\\ne"),
        ("done", "d\x1b(Bo\x1b=n\x1b7e\x1b"),
        (r"^done$", "\x1b[?25ldone\x1b[?25h"),
        (r"completed\s$", "training completed\n"),
        ("^ done", "\ndone"),
        (r"a\x00b", "a\x00b"),
        ("\ud800x", "\ud800x"),
        (r"loss{d}", "loss{d}"),
        (r"[[:x:]", ":"),
    ],
)
def test_a_landmark_is_searched_in_the_cell_s_plain_text(pattern: str, output: str) -> None:
    assert hits([pattern], output) == [True]
    assert hits([pattern], *output) == [True]


@pytest.mark.parametrize(
    ("pattern", "output"),
    [
        ("a b", "ab"), ("a  b", "a\r\nb"), ("a  b", "a\r\r\nb"), ("a b", "a\r\n\r\nb"),
        ("^second", "first\nsecond"), ("first$", "first\nsecond"),
        ("loss{d}", "los"), ("done", "DONE"), ("b", "a\x1b[b"),
    ],
)  # fmt: skip
def test_a_landmark_that_is_not_there_is_missed(pattern: str, output: str) -> None:
    assert hits([pattern], output) == [False]


def test_cells_are_searched_one_by_one() -> None:
    matcher = LandmarkMatcher(["training done", "^done", "training$"])
    run_cell(matcher, ["training "])
    run_cell(matcher, ["done"])
    assert matcher.hits == [False, True, False]


def test_what_a_cell_left_unfinished_does_not_change_the_next() -> None:
    matcher = LandmarkMatcher(["^done$", "^ trained$"])
    run_cell(matcher, ["\x1b]0;a title"])
    run_cell(matcher, ["done"])
    run_cell(matcher, ["100%\r"])
    run_cell(matcher, ["\ntrained"])
    assert matcher.hits == [True, True]


def test_the_step_that_hit_first_is_recorded() -> None:
    matcher = LandmarkMatcher(["loaded", "trained", "tested"])
    run_cell(matcher, ["loaded"], step=1)
    run_cell(matcher, ["loaded, trained"], step=7)
    assert [landmark.step for landmark in matcher.landmarks] == [1, 7, None]


def test_a_landmark_printed_from_the_cell_s_own_source_is_an_echo() -> None:
    matcher = LandmarkMatcher(["training completed", r"accuracy: [\d.]+", "x?"])
    run_cell(matcher, ["training completed\naccuracy: 0.9"], source='print("training completed")')
    assert [landmark.is_echo for landmark in matcher.landmarks] == [True, False, False]


def test_the_metric_is_the_portion_of_the_task_s_landmarks_that_were_hit() -> None:
    task = Task.model_validate({"id": "t", "set": "auto", "query": "q", "landmarks": ["a", "b", "c"]})
    landmarks = [Landmark(pattern="a", step=1), Landmark(pattern="b"), Landmark(pattern="c", step=0)]
    assert LANDMARKS.applies(task)
    assert LANDMARKS.compute(task, Evidence(steps=[], landmarks=landmarks)) == 2 / 3
    assert not LANDMARKS.applies(task.model_copy(update={"landmarks": []}))


def test_output_outside_a_cell_is_ignored() -> None:
    matcher = LandmarkMatcher(["done"], window=16)
    matcher.feed("done " * 100)
    matcher.end_cell()
    run_cell(matcher, ["do"])
    matcher.feed("ne done " * 100)
    run_cell(matcher, ["ne"])
    assert matcher.hits == [False]


def test_a_pattern_that_runs_out_of_time_is_given_up_and_the_others_are_not() -> None:
    matcher = LandmarkMatcher([CATASTROPHE, "done"], time_limit=0.05)
    run_cell(matcher, ["a" * 200 + " ! done"])
    assert [landmark.timed_out for landmark in matcher.landmarks] == [True, False]
    assert matcher.hits == [False, True]
    run_cell(matcher, ["b!"])
    assert matcher.hits == [False, True]


def test_a_pattern_that_only_re_knows_is_searched_with_re() -> None:
    assert hits(["[[:foo:]]x"], "f]x") == [True]


def test_anchors_are_the_cell_s_and_not_a_block_s() -> None:
    matcher = LandmarkMatcher([r"^b", r"b$", r"\bb\b", r"^a", r"c$"], window=4)
    run_cell(matcher, ["a" + "b" * 500 + "c"])
    assert matcher.hits == [False, False, False, True, True]


def test_an_output_of_up_to_262_144_characters_is_searched_as_a_whole() -> None:
    for blanks, expected in ((262_142, True), (262_143, False)):
        matcher = LandmarkMatcher(["^a *b$"])
        run_cell(matcher, ["a", " " * blanks, "b"])
        assert matcher.hits == [expected]


def test_memory_stays_bounded() -> None:
    matcher = LandmarkMatcher(["never there"], window=1024)
    matcher.begin_cell("")
    for _ in range(200):
        matcher.feed("x" * 1000)
    held = sum(map(sys.getsizeof, matcher._windows._parts))
    assert held < 12 * 1024


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        ("loss.*accuracy", ["loss", "accuracy"]),
        (r"\*\*\* done \*\*\*", ["*** done ***"]),
        (r"Epoch \d+: 10?0%+", ["Epoch ", ": 1", "0%"]),
        ("a|b", []),
        ("(?i)done", []),
        (r"\N{DEGREE SIGN}x{a}", ["x{a}"]),
        (r"a\x00b\u00e9c\U0001f600d\012e\.", ["a", "b", "c", "d", "e."]),
    ],
)
def test_the_texts_that_every_match_holds_are_seen(pattern: str, literals: list[str]) -> None:
    assert required_literals(pattern) == literals


ESCAPES = ["\x1b[31;1m", "\x1b[K", "\x1b[?25l", "\x1b]0;ab\x07", "\x1b]8;;a\x1b\\", "\x1b(B", "\x1bM"]
CHARACTERS = ["\r\r\n", "\r\n", "\r", "\n", " ", "a", "b", "ab", "ba", "é", "\x00", "\ud800", "😀"]
TOKENS = st.sampled_from([*ESCAPES, *CHARACTERS])
TEXTS = st.lists(TOKENS, max_size=120).map("".join)
RAW_TEXTS = st.text(st.sampled_from("\x1b[]P\\;1m(B\x07\r\n ab"), max_size=60)
CUTS = st.lists(st.integers(0, 300), max_size=12)
PATTERNS = [
    "ab", "a b", "^ab", "^b", "ba$", " $", r"a\b", r"\bb", r"(?<=a)b", r"b(?!a)", r"b(?=a)", r"a.{0,4}b",
    "é", r"\x00", "\ud800a", "a+", "(?i)AB", r"(?<!b)aa", r"\Aa", r"\S\Z", r"a\sb",
]  # fmt: skip
LONG_PATTERNS = ["a.*b", "^.*ab", "a.*b$", "(?:ab)+$", r"é.*é", r"a(?!.*b)", r"\s+b", "a{5,}"]


def cut(text: str, cuts: Iterable[int]) -> list[str]:
    bounds = [0, *sorted(min(at, len(text)) for at in cuts), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(bounds)]


def naive_plain(text: str) -> str:
    for escape in ESCAPES:
        text = text.replace(escape, "")
    return re.sub("\r+\n?|\n", " ", text)


@given(text=TEXTS, cuts=CUTS)
def test_in_a_long_output_no_match_within_the_window_is_lost_or_invented(text: str, cuts: list[int]) -> None:
    expected = [re.search(pattern, naive_plain(text)) is not None for pattern in PATTERNS]
    assert hits(PATTERNS, *cut(text, cuts), window=7) == expected


@given(text=TEXTS | RAW_TEXTS, cuts=CUTS)
def test_hits_do_not_depend_on_the_chunks(text: str, cuts: list[int]) -> None:
    patterns = PATTERNS + LONG_PATTERNS
    assert hits(patterns, *cut(text, cuts), window=4) == hits(patterns, text, window=4)


@given(text=RAW_TEXTS, cuts=CUTS)
def test_plain_text_does_not_depend_on_the_chunks(text: str, cuts: list[int]) -> None:
    normalizer = PlainText()
    assert "".join(map(normalizer.feed, cut(text, cuts))) == plain(text)
