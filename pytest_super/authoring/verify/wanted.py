"""What of an answer says enough to be looked for, and where texts have it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_super.authoring.verify.numbers import Number, gold_number, same_digits, scaled
from pytest_super.metrics.leaves import leaves, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Of a text, to be no mere name, which the question itself may offer.
LEAST_CHARACTERS = 16
LEAST_WORDS = 3
LEAST_DIGITS = 4
# Half a unit of three digits, and a little more.
NEAR = 0.006


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A value of the answer that a text has."""

    name: str
    """Of the value: where it stands in the answer."""
    start: int
    """Where in the text."""
    digits: int
    """In how many it agrees; 0 for words."""
    value: Any = None
    """As the answer has it."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number of the answer, or that number as a percentage or as a fraction."""

    name: str
    value: int | float
    number: Number

    @property
    def is_whole(self) -> bool:
        return isinstance(self.value, int)


@dataclass(frozen=True, kw_only=True)
class Words:
    """A text of the answer."""

    name: str
    value: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The values of an answer that say enough."""

    figures: list[Figure]
    """By value."""
    values: int
    """Different numbers of the answer that these are of."""
    words: list[Words]

    def without_words(self) -> Wanted:
        return replace(self, words=[])

    def numbers_among(self, numbers: Iterable[Number]) -> list[Hit]:
        values = [figure.number.value for figure in self.figures]
        hits = []
        for number in numbers:
            value = number.value
            near = slice(bisect_left(values, value * (1 - NEAR)), bisect_right(values, value * (1 + NEAR)))
            for figure in self.figures[near]:
                if digits := same_digits(figure.number, number, is_whole=figure.is_whole):
                    hit = Hit(name=figure.name, start=number.start, digits=digits, value=figure.value)
                    hits.append(hit)
        return hits

    def words_in(self, text: str) -> list[Hit]:
        found = ((one, one.pattern.search(text)) for one in self.words)
        return [
            Hit(name=one.name, start=match.start(), digits=0, value=one.value)
            for one, match in found
            if match
        ]


def wanted_of(answer: Any) -> Wanted:
    """`answer` may be None, which holds nothing to be looked for."""
    names: dict[Number, list[str]] = {}
    values: dict[Number, int | float] = {}
    words: list[Words] = []
    for place, value in leaves(answer):
        if isinstance(value, str) and is_telling(value):
            words.append(Words(name=shown(place), value=value, pattern=words_pattern(value)))
        elif isinstance(value, int | float) and (number := gold_number(value)):
            names.setdefault(number, []).append(shown(place))
            values[number] = value
    figures = [
        Figure(name=", ".join(places), value=values[number], number=form)
        for number, places in names.items()
        for form in forms(number, values[number])
    ]
    figures.sort(key=lambda figure: figure.number.value)
    return Wanted(figures=figures, values=len(names), words=words)


def forms(number: Number, value: int | float) -> Iterator[Number]:
    yield number
    if isinstance(value, float) and number.value <= 100:
        yield scaled(number, 2 if number.value <= 1 else -2)


def is_telling(text: str) -> bool:
    is_no_name = len(text.split()) >= LEAST_WORDS or sum(map(str.isdigit, text)) >= LEAST_DIGITS
    return is_no_name and len(text.strip()) >= LEAST_CHARACTERS


def words_pattern(text: str) -> re.Pattern[str]:
    """Its words, whatever white space is between them, and no part of a longer one."""
    words = r"\s+".join(map(re.escape, text.split()))
    return re.compile(rf"(?<!\w){words}(?!\w)")
