"""How good an agent is in general: the tasks are a sample, and those of one repository are alike."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from scipy.special import betaincinv, stdtrit

from pytest_super.gate.samples import LEVEL, PRIOR_FREEDOM


@dataclass(frozen=True, kw_only=True)
class TaskMean:
    """The mean of one task's trials, from 0 to 1."""

    value: float
    cluster: str
    """What makes tasks alike: their repository."""
    weight: float = 1.0
    trials: int = 1


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A mean, with an interval of 90 % around it."""

    value: float
    low: float
    high: float


def general_mean(tasks: Sequence[TaskMean]) -> Interval:
    """Estimate the mean over such tasks in general, from at least one task.

    The interval is that of Jeffreys for a rate, with as many independent trials as have the variance that is
    seen between clusters (Korn & Graubard 1998, Survey Methodology 24, 193-201). So it stays within 0 and 1,
    and has a width where all values are equal.
    """
    total = fsum(one.weight for one in tasks)
    value = min(max(fsum(one.weight * one.value for one in tasks) / total, 0.0), 1.0)
    number = effective_number(tasks, value, total)
    low, high = jeffreys(value * number, number)
    return Interval(value=value, low=low, high=high)


def effective_number(tasks: Sequence[TaskMean], value: float, total: float) -> float:
    """How many independent trials would tell as much as these tasks.

    The variance between clusters is estimated from residuals that are corrected for their share (Bell and
    McCaffrey 2002, Survey Methodology 28, 169-181). Few clusters tell little of it, the less so near 0 and 1,
    so it is moderated by that of clusters whose tasks all end alike.
    """
    shares: defaultdict[str, float] = defaultdict(float)
    residuals: defaultdict[str, float] = defaultdict(float)
    for one in tasks:
        shares[one.cluster] += one.weight / total
        residuals[one.cluster] += one.weight * (one.value - value) / total
    if len(shares) < 2:
        return 1.0
    variance = fsum(residuals[name] ** 2 / (1 - share) for name, share in shares.items())
    if not variance or not 0 < value < 1:
        return float(len(shares))
    # Of clusters with equal weights (Kish 1965).
    count = 1 / fsum(share**2 for share in shares.values())
    few = (float(stdtrit(1e9, LEVEL)) / float(stdtrit(max(count - 1, 1), LEVEL))) ** 2
    own = variance / (few * value * (1 - value))
    moderated = (count * own + PRIOR_FREEDOM / count) / (count + PRIOR_FREEDOM)
    return min(1 / moderated, float(sum(one.trials for one in tasks)))


def jeffreys(successes: float, number: float) -> tuple[float, float]:
    """The interval of Jeffreys, which begins at 0 without a success and ends at 1 without a failure."""
    a, b = successes + 0.5, number - successes + 0.5
    low = float(betaincinv(a, b, 1 - LEVEL)) if successes > 0 else 0.0
    high = float(betaincinv(a, b, LEVEL)) if successes < number else 1.0
    return low, high
