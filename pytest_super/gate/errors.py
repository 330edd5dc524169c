"""How many trials can be errors before figures say nothing: errors do not hit all tasks alike."""

from math import comb, fsum

MAX_ERRORS = 0.05
"""The largest share of errors, unless a user states another."""

# A product or a mean of floats can miss a bound that it equals by its last bit.
ROUNDING = 1e-9


def are_too_many(errors: int, trials: int, limit: float = MAX_ERRORS) -> bool:
    """Whether more than the share `limit` of the trials are errors."""
    return errors > limit * trials + ROUNDING


def decide_nothing(errors: int, trials: int) -> bool:
    """Whether one side of a comparison has too many errors to be one.

    A single one never is: of fewer than 20 trials it is more than the share, and what it hides has bounds.
    """
    return errors > 1 and are_too_many(errors, trials)


def chance_of_more_errors(errors: int, trials: int, before: int, of: int) -> float:
    """The p-value of Fisher's exact test of `errors` of `trials` against `before` of `of`, one-sided."""
    both, all_trials = errors + before, trials + of
    ways = (comb(both, n) * comb(all_trials - both, trials - n) for n in range(errors, both + 1))
    return fsum(way / comb(all_trials, trials) for way in ways)
