"""Which tasks of two sides can be compared, and why the others cannot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pytest_super.gate.comparison.side import Side


class Digests(Protocol):
    """What must be equal where trials of a task are compared."""

    @property
    def conditions(self) -> str: ...
    @property
    def scoring(self) -> str: ...


def why_left_out(baseline: Side, candidate: Side) -> Iterator[tuple[str, list[str]]]:
    """The reasons, each with the tasks for which it is the first."""
    both = [id for id in candidate.tasks if id in baseline.tasks]
    pairs = {id: (baseline.tasks[id], candidate.tasks[id]) for id in both}
    different: dict[str, list[str]] = {}
    for id, (old, new) in pairs.items():
        different.setdefault(why_different(old, new), []).append(id)
    reasons = {
        "its conditions differ between trials of one side": sorted({*baseline.mixed, *candidate.mixed}),
        **only_in(baseline, candidate),
        **only_in(candidate, baseline),
        **different,
    }
    yield from ((reason, ids) for reason, ids in reasons.items() if reason and ids)


def only_in(one: Side, other: Side) -> dict[str, list[str]]:
    failed = only_errors(one, other)
    absent = one.tasks.keys() - other.tasks.keys() - {*other.mixed, *failed}
    return {f"all trials of {other.name} are errors": failed, f"only in {one.name}": sorted(absent)}


def only_errors(one: Side, other: Side) -> list[str]:
    """The tasks that one side has, and of which all trials of the other side are errors."""
    return sorted((one.tasks.keys() & other.errors.keys()) - other.tasks.keys() - {*other.mixed})


def why_different(old: Digests, new: Digests) -> str:
    """Why two trials of a task cannot be compared; "" if they can."""
    before, after = (set(one.conditions.split()) for one in (old, new))
    if names := sorted({part.partition("=")[0] for part in before ^ after}):
        return f"other conditions ({', '.join(names)})"
    return "" if old.scoring == new.scoring else "scored otherwise (answer, grader or metric)"
