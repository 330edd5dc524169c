"""How many trials can be errors before figures say nothing: errors do not hit all tasks alike."""

from __future__ import annotations

MAX_ERRORS = 0.05
"""The largest share of errors, unless a user states another."""

# A product or a mean of floats can miss a bound that it equals by its last bit.
ROUNDING = 1e-9


def are_too_many(errors: int, trials: int, limit: float = MAX_ERRORS) -> bool:
    """Whether more than the share `limit` of the trials are errors."""
    return errors > limit * trials + ROUNDING
