"""What a comparison with a baseline can find, before anything is spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.statistics.decision import Plan, plan

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_super.comparison.side import Side


def plans_of(side: Side, ids: Collection[str], epochs: int, margin: float) -> dict[str, Plan]:
    """By set, of the tasks among `ids` that the baseline has, if each runs in so many epochs."""
    common = [task for id, task in side.tasks.items() if id in ids]
    return {
        name: plan(
            [task.values for task in common if task.set == name],
            [task.weight for task in common if task.set == name],
            epochs=epochs,
            margin=margin,
        )
        for name in sorted({task.set for task in common})
    }
