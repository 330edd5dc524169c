"""What is known of a trial before it runs, and what one process finds out for all processes of a run."""

import fcntl
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_super.session.comparability import digests_of_trial
from pytest_super.session.run import RUN
from pytest_super.session.trial.item import TaskItem
from pytest_super.store.json_lines import disk_errors, read_json
from pytest_super.store.results import TrialResult


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The digests of a result, and the metrics that it has."""

    subject: str
    conditions: str
    scoring: str
    metrics: frozenset[str]

    def differs_from(self, stored: TrialResult) -> str:
        """What differs first; "" if nothing does."""
        for name in ("subject", "conditions", "scoring"):
            if getattr(self, name) != getattr(stored, name):
                return name
        return "" if self.metrics == stored.metrics.keys() else "metrics"


def expected_of(item: TaskItem) -> Expected:
    """Raises what hooks of the project raise."""
    # Not at the top, for sessions that only collect.
    from pytest_super.session.trial.kernels import choose_sandbox, facts_of

    facts = facts_of(choose_sandbox(item, item.task), item.task)
    now = item.start_result()
    digests = digests_of_trial(item.task, item.config.stash[RUN].subject, facts)
    return Expected(**digests, scoring=now.scoring, metrics=frozenset(now.metrics))


def once_in_a_run(note: Path, found: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Write and return what the first process finds at the end of its collection; the others wait for it.

    xdist starts no trial before each worker has collected. Raises InfrastructureError, and what `found`
    raises.
    """
    with disk_errors(note):
        note.parent.mkdir(parents=True, exist_ok=True)
        with note.open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not note.stat().st_size:
                file.write(json.dumps(found()))
    return dict(read_json(note))
