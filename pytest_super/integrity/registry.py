"""The kinds of signs, and those of a trial. To add one: write a `Look` in a file of this folder."""

from collections.abc import Iterator
from itertools import islice

from pytest_super.integrity.code import BY_AGENT, BY_CODE
from pytest_super.integrity.files import BY_FILES
from pytest_super.integrity.graded import BY_GRADER
from pytest_super.integrity.look import OBSERVED, Look, Traces
from pytest_super.integrity.running import RUNNING
from pytest_super.metrics.evidence import Sign
from pytest_super.words import one_line

LOOKS: tuple[Look, ...] = (*BY_AGENT, *RUNNING, *BY_FILES, *BY_CODE, *BY_GRADER)
# Of one kind in one trial, and characters of the evidence of each.
MOST_SIGNS, LONGEST = 20, 200


def signs_of(traces: Traces) -> list[Sign]:
    return [sign for look in LOOKS if look.can_see(traces) for sign in signs_by(look, traces)]


def signs_by(look: Look, traces: Traces) -> Iterator[Sign]:
    for seen in islice(look.find(traces), MOST_SIGNS):
        evidence = one_line(seen.evidence, LONGEST)
        yield Sign(kind=look.kind, step=seen.step, evidence=evidence, is_suspect=look.is_suspect)


def unseen_in(traces: Traces) -> list[str]:
    """What would have to be observed for the signs that were not looked for, or not everywhere."""
    return [needed for needed, is_observed in OBSERVED.items() if not is_observed(traces)]
