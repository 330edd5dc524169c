"""Trials of an earlier run that need not run again: they are reported from the store."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_super.agents.identity import is_in_image
from pytest_super.session.comparability import digests_of_trial
from pytest_super.session.item import RESULT, STORED, TaskItem
from pytest_super.session.private_pytest import fixture_definitions, is_own
from pytest_super.session.run import RUN
from pytest_super.session.start_ahead import OUTCOMES
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.checked import checked_result
from pytest_super.store.json_lines import UNREADABLE, disk_errors, to_line
from pytest_super.store.results import folder_name
from pytest_super.store.run_folder import last_reruns, link_tree, stored_results

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_super.store.results import TrialResult

RESUMED_RUN: pytest.StashKey[ResumedRun] = pytest.StashKey()


class ResumedRun:
    """An earlier run, whose valid trials are taken over if nothing that decides them has changed."""

    def __init__(self, folder: Path) -> None:
        """Raises pytest.UsageError if the run cannot be read."""
        self._folder = folder
        try:
            self._results = {(one.id, one.epoch): one for one in last_reruns(valid_results(folder))}
        except UNREADABLE as error:
            raise pytest.UsageError(f"--super-resume: {folder} cannot be read: {error}") from None

    def prepare(self, item: TaskItem) -> None:
        """Put the stored result of an item into its stash, if it has one. The item then runs nothing."""
        stored = self._results.get((item.task.id, item.epoch))
        if STORED in item.stash or stored is None:
            return
        # What a hook raises here it raises in the trial as well, which then reports it.
        with suppress(Exception, *OUTCOMES):
            if is_known(item) and is_same(item, stored):
                item.stash[STORED] = stored

    def take_over(self, item: TaskItem) -> None:
        """Copy the files of the stored trial into this run. Raises InfrastructureError."""
        stored = item.stash[STORED]
        folder = f"trials/{stored.id}/{stored.epoch}.0"
        result = replace(
            stored,
            # It only describes the task, so it may have changed.
            category=item.task.category,
            rerun=0,
            folder=folder,
            resumed_from=stored.resumed_from or self._folder.name,
        )
        new = item.config.stash[RUN].path / folder
        with disk_errors(new):
            # A rename, so that a worker that dies meanwhile leaves no half of it.
            part = new.with_name(f".{new.name}-{os.getpid()}")
            link_tree(self._folder / folder_name(stored), part)
            # A new file, which leaves the linked one as it is.
            write_atomically(part / "result.json", to_line(result.to_data()))
            if not new.exists():
                part.rename(new)
        item.stash[STORED] = item.stash[RESULT] = result


def is_known(item: TaskItem) -> bool:
    """Whether the digests have all that decides the trial: not what fixtures and hooks of the project do."""
    run, hooks = item.config.stash[RUN], item.config.hook
    fixtures = fixture_definitions(item)
    return (
        fixtures is not None
        and all(is_own(fixture) for fixture in fixtures if fixture.argname.startswith("super_"))
        and len(hooks.pytest_super_make_agent.get_hookimpls()) == 1
        # The files of a mounted folder can change.
        and not run.settings.for_sandboxes.mounts
        and (bool(run.subject["contents"]) or is_in_image(run.settings.agent))
    )


def is_same(item: TaskItem, stored: TrialResult) -> bool:
    """Raises what hooks of the project raise."""
    # Not at the top, for sessions that only collect.
    from pytest_super.session.kernels import choose_sandbox, facts_of

    facts = facts_of(choose_sandbox(item, item.task), item.task)
    now = item.start_result()
    expected = digests_of_trial(item.task, item.config.stash[RUN].subject, facts)
    return (
        all(getattr(stored, name) == value for name, value in expected.items())
        and stored.scoring == now.scoring
        and stored.metrics.keys() == now.metrics.keys()
    )


def valid_results(folder: Path) -> Iterator[TrialResult]:
    for one in stored_results(folder):
        # A time-out of pytest is an option of that run.
        if not (one.is_error or one.is_interrupted or one.stop_reason == "timeout"):
            yield checked_result(one)
