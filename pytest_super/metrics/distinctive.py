"""The values of an answer that are distinctive enough to be looked for in texts, and how they are found."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_super.metrics.leaves import leaves, shown

# Significant digits in which a number of a text must agree with a value. Numbers with fewer, such as 0.95 and
# 64, are in every text.
LEAST_DIGITS = 3
# A shorter text is a name, which the question itself can offer as a choice.
LEAST_CHARACTERS = 16
LEAST_WORDS = 3
LEAST_DIGITS_OF_TEXT = 4

# Not part of a longer number, name, version or date. A sign is left out, because it can be a hyphen.
# Commas separate thousands only where all of them can: `12,345,6789` is three numbers.
NUMBER = re.compile(
    r"(?<![\w.])(?:(?<!\d,)[1-9]\d{0,2}(?:,\d{3})++(?!,?\d)(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)"
    r"(?:[eE][-+]?\d{1,3})?(?!\w|\.\d)"
)
# Numbers that agree in LEAST_DIGITS digits differ by at most this much, relatively.
NEAR = 0.012


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text, without its sign."""

    value: float
    digits: int
    """Significant ones; trailing zeros count only after a decimal point."""
    start: int
    """Offset in the text."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number of the answer."""

    name: str
    """Its place in the answer."""
    value: float
    digits: int

    def find(self, _text: str, numbers: Sequence[Number]) -> int | None:
        """The offset of the first of a text's numbers that is this one."""
        return next((number.start for number in numbers if self.is_given_by(number)), None)

    def is_given_by(self, number: Number) -> bool:
        """Whether one is the other as it is, rounded, or as a percentage."""
        exact = abs(self.value)
        if isinstance(exact, int):
            # Nobody rounds a whole number. A long one is read in a text as the nearest float.
            return number.value == float(str(exact))
        digits = min(self.digits, number.digits)
        return any(agree(form, number.value, digits) for form in forms(exact))


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
        # Not math.isfinite, which raises for a large int.
        elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf:
            digits = len(mantissa(repr(value)).strip("0"))
            if digits >= LEAST_DIGITS:
                yield Figure(name=name, value=value, digits=digits)


def forms(value: float) -> tuple[float, ...]:
    """The value, and a fraction as a percentage or the other way round."""
    if value > 100:
        return (value,)
    return (value, value * 100 if value <= 1 else value / 100)


def is_distinctive(text: str) -> bool:
    has_words = len(text.split()) >= LEAST_WORDS
    has_digits = sum(map(str.isdigit, text)) >= LEAST_DIGITS_OF_TEXT
    return len(text.strip()) >= LEAST_CHARACTERS and (has_words or has_digits)


def numbers_in(text: str, least_digits: int) -> Iterator[Number]:
    """The numbers with at least so many significant digits, in order."""
    for match in NUMBER.finditer(text):
        written = match[0].replace(",", "")
        digits = mantissa(written).lstrip("0")
        if "." not in written and "e" not in written.lower():
            digits = digits.rstrip("0")
        if len(digits) >= least_digits:
            yield Number(float(written), len(digits), match.start())


def chance_of(digits: int, others: int) -> float:
    """That two numbers agree which have nothing to do with each other, by their digits."""
    return 2 / 9 * 10.0 ** (1 - min(digits, others))


def mantissa(written: str) -> str:
    """The digits of a written number before its exponent."""
    return re.sub(r"[eE].*|[-.]", "", written)


def agree(one: float, other: float, digits: int) -> bool:
    """Whether the two are equal when they are rounded to so many significant digits."""
    # Formatting is slow, and most numbers are not near each other.
    is_near = abs(one - other) <= NEAR * one
    return is_near and f"{one:.{digits - 1}e}" == f"{other:.{digits - 1}e}"
