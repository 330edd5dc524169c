"""Numbers of answers and results, compared as the decimals that they are written as."""

import sys
from fractions import Fraction
from typing import Any, TypeGuard


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether it is a finite number that floats can compare. JSON has integers of any size."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def exact(number: int | float) -> Fraction:
    """The shortest decimal of a finite number: in binary 0.61 - 0.60 is more than 0.01."""
    # float's own repr: subclasses such as numpy's put a type name around theirs.
    return Fraction(number) if isinstance(number, int) else Fraction(float.__repr__(number))
