"""Numbers in texts, and whether one is another as it would be printed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# With fewer, a number says too little: 0.95 and 64 stand everywhere.
LEAST_DIGITS = 3
# No part of a longer number, name, version or date; signs are left out, since a hyphen may be none.
# Commas part thousands where all of them could: in `12,345,6789` they part three numbers.
_NUMBER = re.compile(
    r"(?<![\w.])(?:(?<!\d,)[1-9]\d{0,2}(?:,\d{3})++(?!,?\d)(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)"
    r"(?:[eE][-+]?\d{1,3})?(?!\w|\.\d)"
)
# More are no figures but keys, and would cost time.
LONGEST = 40


@dataclass(frozen=True, slots=True)
class Number:
    """A number without its sign and without commas."""

    written: str
    digits: int
    """Significant ones; trailing zeros count behind a decimal point only."""
    start: int = 0
    """Where in the text."""

    @property
    def value(self) -> float:
        return float(self.written)

    @property
    def exact(self) -> Decimal:
        return Decimal(self.written)


def numbers_in(text: str) -> Iterator[Number]:
    """Those with at least LEAST_DIGITS significant digits, in order."""
    for match in _NUMBER.finditer(text):
        written = match[0].replace(",", "")
        if LEAST_DIGITS <= len(written) <= LONGEST:
            digits = count_digits(written)
            if digits >= LEAST_DIGITS:
                yield Number(written, digits, match.start())


def count_digits(written: str) -> int:
    mantissa, is_exponential, _ = written.lower().partition("e")
    whole, point, part = mantissa.partition(".")
    digits = (whole + part).lstrip("0")
    return len(digits if point or is_exponential else digits.rstrip("0"))


def gold_number(value: int | float) -> Number | None:
    """A value of an answer in its shortest form; None for one that says too little, or is not finite."""
    if isinstance(value, bool) or not abs(value) < math.inf:
        return None
    exact = Decimal(repr(abs(value)))
    number = Number(str(exact), len("".join(map(str, exact.as_tuple().digits)).strip("0")))
    return number if number.digits >= LEAST_DIGITS else None


def scaled(number: Number, places: int) -> Number:
    return Number(str(number.exact.scaleb(places)), number.digits, number.start)


def same_digits(gold: Number, written: Number, *, is_whole: bool) -> int:
    """In how many digits the two are the same number, one perhaps rounded; 0 where they are not.

    A gold that is whole is not rounded.
    """
    distance = abs(gold.exact - written.exact)
    allowed = Decimal(0) if is_whole else max(half_unit(gold), half_unit(written))
    return min(gold.digits, written.digits) if distance <= allowed else 0


def half_unit(number: Number) -> Decimal:
    """Of the last significant digit: how far what it was rounded from may be away."""
    return Decimal(5).scaleb(number.exact.adjusted() - number.digits)
