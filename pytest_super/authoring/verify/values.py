"""The values of an answer that are distinctive enough to be looked for in texts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_super.authoring.verify.numbers import Number, agree, near, scaled, shortest
from pytest_super.metrics.leaves import leaves, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# A shorter text is a name, which the question itself can offer as a choice.
LEAST_CHARACTERS = 16
LEAST_WORDS = 3
LEAST_DIGITS_OF_TEXT = 4


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number of the answer."""

    name: str
    """Its place in the answer."""
    value: float
    forms: tuple[Number, ...]
    """The number itself, and a fraction as a percentage or the other way round."""

    @property
    def digits(self) -> int:
        return self.forms[0].digits

    def find(self, _text: str, numbers: Sequence[Number]) -> int | None:
        """The offset of the first number that is this one, maybe rounded; `numbers` are sorted by value."""
        close = (number for form in self.forms for number in near(numbers, form.value))
        return min((number.start for number in close if self.is_given_by(number)), default=None)

    def is_given_by(self, number: Number) -> bool:
        if isinstance(self.value, int):
            # Nobody rounds a whole number.
            return number.exact == abs(self.value)
        return any(agree(form, number) for form in self.forms)


@dataclass(frozen=True, kw_only=True)
class Phrase:
    """A text of the answer."""

    name: str
    value: str

    def find(self, text: str, _numbers: Sequence[Number]) -> int | None:
        """The offset of its words, with any white space between them, not as part of a longer word."""
        words = r"\s+".join(map(re.escape, self.value.split()))
        match = re.search(rf"(?<!\w){words}(?!\w)", text)
        return match.start() if match else None


def distinctive_values(answer: Any) -> Iterator[Figure | Phrase]:
    """An answer of None has no values."""
    for place, value in leaves(answer):
        name = shown(place)
        if isinstance(value, str):
            if is_distinctive(value):
                yield Phrase(name=name, value=value)
        elif isinstance(value, int | float) and (number := shortest(value)):
            yield Figure(name=name, value=value, forms=tuple(forms(number)))


def forms(number: Number) -> Iterator[Number]:
    yield number
    if number.exact <= 100:
        yield scaled(number, 2 if number.exact <= 1 else -2)


def is_distinctive(text: str) -> bool:
    has_words = len(text.split()) >= LEAST_WORDS
    has_digits = sum(map(str.isdigit, text)) >= LEAST_DIGITS_OF_TEXT
    return len(text.strip()) >= LEAST_CHARACTERS and (has_words or has_digits)
