"""Texts of a trajectory for the page: of bounded size, with the places that landmarks match."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_super.metrics.matching.patterns import Pattern, Window
from pytest_super.tasks.fields import check_regex

# What of a text is shown at once; the rest is behind a fold.
AT_ONCE = 4000
# The share of a clipped text that is its beginning.
HEAD = 2 / 3
MATCH_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A part of a text. `landmark` is the number of the landmark that matches it, from 1."""

    text: str
    landmark: int | None = None


@dataclass(frozen=True, kw_only=True)
class Text:
    """A text in two parts, shown at once and behind a fold, and how many characters are left out."""

    at_once: list[Piece]
    folded: list[Piece]
    folded_characters: int
    omitted: int


def level_of(texts: Iterable[str], budget: int) -> int:
    """The largest number of characters to which each text can be cut so that all together fit the budget."""
    sizes = [len(text) for text in texts]
    left, count = budget, len(sizes)
    for size in sorted(sizes):
        if size * count > left:
            return max(left // count, 0)
        left -= size
        count -= 1
    return max(sizes, default=0)


def first_lines(text: str, most: int) -> int:
    """How many characters the lines have that fit into `most`; `most` if the first one does not fit."""
    return len(text) if len(text) <= most else text.rfind("\n", 0, most) + 1 or most


def text_of(text: str, most: int, landmarks: Iterable[tuple[int, str]] = (), at_once: int = AT_ONCE) -> Text:
    """The text, cut in its middle to `most` characters. `landmarks` are numbers and patterns that it hits."""
    head = len(text) if len(text) <= most else int(most * HEAD)
    tail = max(min(len(text), most) - head, 0)
    first = min(head, at_once)
    spans = sorted(span for number, pattern in landmarks if (span := match_of(text, number, pattern)))
    omitted = len(text) - head - tail
    return Text(
        at_once=list(pieces(text, 0, first, spans)),
        folded=[
            *pieces(text, first, head, spans),
            *([Piece(text=f"\n[… {omitted:,} characters are left out here …]\n")] if omitted else []),
            *pieces(text, len(text) - tail, len(text), spans),
        ],
        folded_characters=head - first + tail,
        omitted=omitted,
    )


def match_of(text: str, number: int, pattern: str) -> tuple[int, int, int] | None:
    """Begin, end and number of the first match. Landmarks match line ends as blanks."""
    line = text.replace("\n", " ")
    try:
        found = Pattern(check_regex(pattern), time_limit=MATCH_SECONDS).search(
            Window(text=line, start=0, stop=len(line) + 1)
        )
    except (ValueError, RecursionError):
        return None
    # An earlier place with the same text can only be marked instead of it if the pattern looks around itself.
    begin = line.find(found) if found else -1
    return (begin, begin + len(found), number) if found and begin >= 0 else None


def pieces(text: str, begin: int, end: int, spans: Sequence[tuple[int, int, int]]) -> Iterable[Piece]:
    """The text from `begin` to `end`, cut at the spans; of spans that overlap the first counts."""
    for first, last, number in spans:
        first, last = max(first, begin), min(last, end)
        if first >= last:
            continue
        if first > begin:
            yield Piece(text=text[begin:first])
        yield Piece(text=text[first:last], landmark=number)
        begin = last
    if begin < end:
        yield Piece(text=text[begin:end])
