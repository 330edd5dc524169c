"""Numbers of an answer in thousands of other numbers: those that are hardly there by chance.

The leading digits of two numbers agree in d digits by chance in one of 9 * 10^(d-1) pairs, and a number is
looked for in two forms. So among m different numbers it is expected m * p times, p = 2 / (9 * 10^(d-1)). It
counts where that is below MOST_EXPECTED: among all numbers, among those that the name of its field belongs
to, or, together with another value of the answer, among those that are near that one.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from pytest_super.metrics.distinctive import Figure, Number, chance_of, numbers_in

if TYPE_CHECKING:
    from pytest_super.authoring.verify.texts import Text

MOST_EXPECTED = 0.05
# Significant digits that a number has at least. With fewer it is in every text.
LEAST_DIGITS = 4
# More different numbers are not counted: figures with fewer than eight digits are among them by chance.
MOST_NUMBERS = 250_000
# A field is named in the line of its number or in one of so many lines before, as a table's head is.
LINES_BEFORE = 2
# Values are near within so many lines.
LINES_BETWEEN = 3


@dataclass(kw_only=True)
class Compared:
    """The different numbers that figures are compared with."""

    all: set[float] = field(default_factory=set)
    named: Mapping[str, set[float]] = field(default_factory=lambda: defaultdict(set))
    """Those that the name of a figure's field belongs to."""

    @property
    def count(self) -> float:
        return len(self.all) if len(self.all) < MOST_NUMBERS else math.inf


@dataclass(frozen=True, kw_only=True)
class Found:
    """A number that agrees with a figure, in a line of the text, from 0."""

    figure: Figure
    number: Number
    line: int

    @property
    def chance(self) -> float:
        """That another number agrees."""
        return chance_of(self.figure.digits, self.number.digits)


class Lines:
    """A text by its lines, with its numbers."""

    def __init__(self, text: Text) -> None:
        self.numbers = list(numbers_in(text.text, LEAST_DIGITS))
        lines = text.text.split("\n")
        self._starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
        self._lines = [line.lower() for line in lines] if self.numbers else []

    def line_of(self, number: Number) -> int:
        return bisect(self._starts, number.start) - 1

    def naming(self, figure: Figure) -> set[int]:
        """The lines whose numbers the name of the figure's field belongs to."""
        patterns = [re.compile(rf"(?<![a-z]){word}(?![a-z0-9])") for word in words_of(figure.name)]
        if not patterns:
            return set()
        has = [
            {
                later
                for number, line in enumerate(self._lines)
                if pattern.search(line)
                for later in range(number, number + LINES_BEFORE + 1)
            }
            for pattern in patterns
        ]
        return set.intersection(*has)


def words_of(name: str) -> list[str]:
    """The words of the last part of a place in the answer; none of a letter, or of the answer as a whole."""
    last = re.sub(r"\[.*?\]", "", name).rpartition(".")[2].lower()
    words = re.findall(r"[a-z]+\d*", last)
    return words if " " not in last and all(len(word) > 1 for word in words) else []


def numbers_compared(texts: Iterable[Text], figures: Sequence[Figure]) -> Compared:
    compared = Compared()
    for text in texts:
        lines = Lines(text)
        if len(compared.all) < MOST_NUMBERS:
            compared.all.update(number.value for number in lines.numbers)
        for figure in figures:
            if naming := lines.naming(figure):
                own = (number.value for number in lines.numbers if lines.line_of(number) in naming)
                compared.named[figure.name].update(own)
    return compared


def figures_in(text: Text, figures: Sequence[Figure], compared: Compared) -> Iterator[Found]:
    """The numbers of a text that agree with a figure, hardly by chance."""
    lines = Lines(text)
    found = [
        Found(figure=figure, number=number, line=lines.line_of(number))
        for figure in figures
        for number in lines.numbers
        if figure.is_given_by(number)
    ]
    for one in found:
        is_near = (are_near(one, other, lines, compared) for other in found)
        if is_alone(one, compared) or is_named(one, lines, compared) or any(is_near):
            yield one


def is_alone(one: Found, compared: Compared) -> bool:
    """Whether hardly any of all numbers agrees by chance."""
    return one.chance * compared.count < MOST_EXPECTED


def is_named(one: Found, lines: Lines, compared: Compared) -> bool:
    named = compared.named.get(one.figure.name, ())
    return one.chance * len(named) < MOST_EXPECTED and one.line in lines.naming(one.figure)


def are_near(one: Found, other: Found, lines: Lines, compared: Compared) -> bool:
    """Whether two numbers are near each other and agree with two figures."""
    if one.figure is other.figure or one.number is other.number or abs(one.line - other.line) > LINES_BETWEEN:
        return False
    near = {
        number.value for number in lines.numbers if abs(lines.line_of(number) - other.line) <= LINES_BETWEEN
    }
    return other.chance * compared.count * one.chance * len(near) < MOST_EXPECTED
