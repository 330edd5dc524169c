"""Refuses gates on figures that no selected task has, before the first trial is paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.errors import SuperError
from pytest_super.gates.fail_under import FailUnder
from pytest_super.gates.figures import names_of_figures
from pytest_super.metrics.registry import REFERENCE
from pytest_super.session.run import RUN
from pytest_super.session.scoring import SCORING, source_of_gates
from pytest_super.session.start_ahead import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from pytest_super.session.item import TaskItem


def refuse_missing_figures(config: pytest.Config, items: Iterable[TaskItem]) -> None:
    """Raises SuperError for a gate on a figure that no trial of the items can have."""
    scoring = config.stash[SCORING]
    names = [gate.figure.name for gate in scoring.gates if isinstance(gate, FailUnder)]
    # The published code decides itself what it scores.
    if not names or config.stash[RUN].settings.scoring == REFERENCE:
        return
    try:
        there = names_of_figures(scoring.metrics, [item.task for item in items])
    # What a metric raises here it raises in the trial as well, which then reports it.
    except (Exception, *OUTCOMES):
        return
    if missing := [name for name in names if name not in there]:
        source, known = source_of_gates(config), ", ".join(there)
        raise SuperError(f"{source}: no selected task has {missing[0]}: choose from {known}")
