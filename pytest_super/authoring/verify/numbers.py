"""Numbers in texts, and whether one is another, rounded to fewer digits."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Numbers with fewer significant digits, such as 0.95 and 64, are in every text.
LEAST_DIGITS = 3
# Not part of a longer number, name, version or date. A sign is left out, because it can be a hyphen.
# Commas separate thousands only where all of them can: `12,345,6789` is three numbers.
_NUMBER = re.compile(
    r"(?<![\w.])(?:(?<!\d,)[1-9]\d{0,2}(?:,\d{3})++(?!,?\d)(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)"
    r"(?:[eE][-+]?\d{1,3})?(?!\w|\.\d)"
)
# A longer run of digits is a key rather than a figure.
LONGEST = 40
# Numbers that agree in LEAST_DIGITS digits differ by at most half a unit of the last one, relatively.
NEAR = 0.006


@dataclass(frozen=True, slots=True)
class Number:
    """A number without its sign and without commas."""

    written: str
    digits: int
    """Significant ones; trailing zeros count only after a decimal point."""
    start: int = 0
    """Offset in the text."""

    @property
    def value(self) -> float:
        return float(self.written)

    @property
    def exact(self) -> Decimal:
        return Decimal(self.written)

    @property
    def half_unit(self) -> Decimal:
        """Half a unit of the last significant digit: the largest error that rounding to it makes."""
        return Decimal(5).scaleb(self.exact.adjusted() - self.digits)


def numbers_in(text: str, least_digits: int = LEAST_DIGITS) -> Iterator[Number]:
    """The numbers with at least so many significant digits, in order."""
    for match in _NUMBER.finditer(text):
        written = match[0].replace(",", "")
        if least_digits <= len(written) <= LONGEST:
            digits = count_digits(written)
            if digits >= least_digits:
                yield Number(written, digits, match.start())


def count_digits(written: str) -> int:
    mantissa, is_exponential, _ = written.lower().partition("e")
    whole, point, part = mantissa.partition(".")
    digits = (whole + part).lstrip("0")
    return len(digits if point or is_exponential else digits.rstrip("0"))


def shortest(value: float) -> Number | None:
    """A value of an answer in its shortest form; None when it is not finite or has too few digits."""
    if isinstance(value, bool) or not abs(value) < math.inf:
        return None
    exact = Decimal(repr(abs(value)))
    number = Number(str(exact), len("".join(map(str, exact.as_tuple().digits)).strip("0")))
    return number if number.digits >= LEAST_DIGITS else None


def scaled(number: Number, places: int) -> Number:
    return Number(str(number.exact.scaleb(places)), number.digits, number.start)


def agree(one: Number, other: Number) -> bool:
    """Whether the number with fewer digits is the other one, rounded."""
    return abs(one.exact - other.exact) <= max(one.half_unit, other.half_unit)


def near(numbers: Sequence[Number], value: float) -> Sequence[Number]:
    """The ones among `numbers`, sorted by value, that can agree with a value."""
    low = bisect_left(numbers, value * (1 - NEAR), key=lambda number: number.value)
    return numbers[low : bisect_right(numbers, value * (1 + NEAR), lo=low, key=lambda number: number.value)]
