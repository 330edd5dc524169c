"""Finds lines or a text in a file. Only a newline ends a line.

All searches take time linear in the size of the file.
"""

import io
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

# Searches stop after this many places, to limit the time that a very frequent text takes.
MOST = 100
# Pairs of equal lines that a partial match compares: in a file of equal lines, all pairs are equal.
MOST_EQUAL = 10**6
SPACES = b" \t\r"
BLANK_LINE = re.compile(rb"(?m)^[ \t\r]++$")


@dataclass(frozen=True, slots=True)
class Place:
    """Bytes `start` to `end` of a file."""

    start: int
    end: int


def has_text(data: bytes) -> bool:
    return bool(data.strip(SPACES + b"\n"))


def text_places(data: bytes, text: bytes) -> list[Place]:
    """Find up to MOST places of the text. Newlines match CRLF, unless it has carriage returns.

    If the text begins with a newline, a place at a CRLF begins at the carriage return.
    """
    if b"\r" in text or b"\r\n" not in data:
        return [Place(at, at + len(text)) for at in positions(data, text)]
    flat = data.replace(b"\r\n", b"\n")
    count, last = text.count(b"\n"), len(text) - (text.rfind(b"\n") + 1)
    places, line, seen = [], 0, 0
    for at in positions(flat, text):
        line, seen = skip_lines(data, line, flat.count(b"\n", seen, at)), at
        start = line + at - (flat.rfind(b"\n", 0, at) + 1)
        places.append(Place(start, (skip_lines(data, line, count) if count else start) + last))
    return places


def line_places(data: bytes, lines: bytes) -> list[Place]:
    """Find up to MOST places of the lines, without the end of the last. All blank lines are equal."""
    return located(data, lines, exact_keys)


def near_places(data: bytes, lines: bytes) -> list[Place]:
    """Like `line_places`, but ignores leading and trailing spaces."""
    return located(data, lines, stripped_keys)


def best_place(data: bytes, lines: bytes) -> Place | None:
    """The first place where most of the lines with text match line by line, or None."""
    has_returns = b"\r\n" in lines
    sought = list(io.BytesIO(exact_keys(lines, has_returns)))
    starts = starts_by_line(exact_keys(data, has_returns), sought)
    scores = Counter(start for start in islice(starts, MOST_EQUAL) if start >= 0)
    if not scores:
        return None
    best = max(scores, key=lambda start: (scores[start], -start))
    return lines_at(data, skip_lines(data, 0, best), len(sought), has_returns)


def starts_by_line(keys: bytes, sought: list[bytes]) -> Iterator[int]:
    """For each pair of equal lines: the number of the line at which the sought lines would begin."""
    offsets: dict[bytes, list[int]] = defaultdict(list)
    for number, line in enumerate(sought):
        if has_text(line):
            offsets[line].append(number)
    for number, line in enumerate(io.BytesIO(keys)):
        for offset in offsets.get(line, ()):
            yield number - offset


def located(data: bytes, lines: bytes, keys_of: Callable[[bytes, bool], bytes]) -> list[Place]:
    """The places of lines with the same keys."""
    has_returns = b"\r\n" in lines
    keys, sought = b"\n" + keys_of(data, has_returns), keys_of(lines, has_returns)
    count = sought.count(b"\n")
    places, start, seen = [], 0, 0
    for at in positions(keys, b"\n" + sought):
        start, seen = skip_lines(data, start, keys.count(b"\n", seen, at)), at
        places.append(lines_at(data, start, count, has_returns))
    return places


def exact_keys(lines: bytes, has_returns: bool) -> bytes:
    ended = lines if lines.endswith(b"\n") or not lines else lines + b"\n"
    keys = BLANK_LINE.sub(b"", ended)
    return keys if has_returns else keys.replace(b"\r\n", b"\n")


def stripped_keys(lines: bytes, _has_returns: bool) -> bytes:
    # Line by line: a regular expression for trailing spaces is quadratic in the length of inner ones.
    keys = io.BytesIO()
    keys.writelines(line.strip(SPACES + b"\n") + b"\n" for line in io.BytesIO(lines))
    return keys.getvalue()


def positions(data: bytes, text: bytes) -> list[int]:
    """Find up to MOST positions of `text` in `data`, overlapping ones too."""
    found: list[int] = []
    at = data.find(text)
    while at >= 0 and len(found) < MOST:
        found.append(at)
        at = data.find(text, at + 1)
    return found


def lines_at(data: bytes, start: int, count: int, has_returns: bool) -> Place:
    """The place of `count` lines from `start` on, without the end of the last line."""
    end = skip_lines(data, start, count)
    if data[end - 1 : end] == b"\n":
        end -= 1
    if not has_returns and data[end - 1 : end] == b"\r":
        end -= 1
    return Place(start, end)


def skip_lines(data: bytes, at: int, count: int) -> int:
    """The beginning of the `count`-th line after the one at `at`; at most the end of `data`."""
    for _ in range(count):
        at = end_of_line(data, at)
    return at


def end_of_line(data: bytes, at: int) -> int:
    """The end of the line that contains `at`, including its newline."""
    return data.find(b"\n", at) + 1 or len(data)
