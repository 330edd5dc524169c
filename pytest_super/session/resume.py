"""Trials of an earlier run that need not run again: they are reported from the store."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_super.errors import InfrastructureError, SuperError
from pytest_super.session.comparability import digests_of_trial
from pytest_super.session.item import STORED, TaskItem
from pytest_super.session.run import RUN
from pytest_super.store.checked import checked_result
from pytest_super.store.json_lines import disk_errors
from pytest_super.store.results import RUNNING, TrialResult, read_result, read_results
from pytest_super.store.run_folder import last_reruns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RESUMED_RUN: pytest.StashKey[ResumedRun] = pytest.StashKey()


class ResumedRun:
    """An earlier run, whose valid trials are taken over if nothing that decides them has changed."""

    def __init__(self, folder: Path) -> None:
        """Raises pytest.UsageError if the run cannot be read."""
        self._folder = folder
        try:
            self._results = {(one.id, one.epoch): one for one in last_reruns(valid_results(folder))}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise pytest.UsageError(f"--super-resume: {folder} cannot be read: {error}") from None

    def prepare(self, item: TaskItem) -> None:
        """Put the stored result of an item into its stash, if it has one. The item then runs nothing."""
        if STORED in item.stash or (item.task.id, item.epoch) not in self._results:
            return
        stored = self._results[item.task.id, item.epoch]
        # What the disk refuses now it refuses to the trial as well, which then reports it.
        with suppress(InfrastructureError):
            if self.is_same(item, stored):
                item.stash[STORED] = self.taken_over(item, stored)

    def is_same(self, item: TaskItem, stored: TrialResult) -> bool:
        # Not at the top, for sessions that only collect.
        from pytest_super.session.kernels import choose_sandbox, facts_of

        run = item.config.stash[RUN]
        try:
            facts = facts_of(choose_sandbox(item, item.task), item.task)
        except SuperError:
            # The trial itself reports it.
            return False
        around = {name: facts[name] for name in ("sandbox", "software", "environment")}
        expected = digests_of_trial(item.task, run.subject, around)
        expected["scoring"] = item.start_result().scoring
        return all(getattr(stored, name) == value for name, value in expected.items())

    def taken_over(self, item: TaskItem, stored: TrialResult) -> TrialResult:
        """The result in this run, with the trial's files. Raises InfrastructureError."""
        folder = f"trials/{stored.id}/{stored.epoch}.0"
        new = item.config.stash[RUN].path / folder
        with disk_errors(new):
            if not new.exists():
                shutil.copytree(self._folder / stored.folder, new, copy_function=link_or_copy)
        return replace(stored, rerun=0, folder=folder, resumed_from=stored.resumed_from or self._folder.name)


def valid_results(folder: Path) -> Iterator[TrialResult]:
    """Of the run's list, and of trials that had ended when the run was killed before it could list them."""
    found = list(read_results(folder)) if (folder / "results.jsonl").exists() else []
    listed = {(one.id, one.epoch, one.rerun) for one in found}
    for path in sorted((folder / "trials").glob("*/*/result.json")):
        if (one := read_result(path)) is not None and (one.id, one.epoch, one.rerun) not in listed:
            found.append(one)
    for one in found:
        if not (one.is_error or one.is_interrupted or one.stop_reason == RUNNING):
            yield checked_result(one)


def link_or_copy(source: str, target: str) -> None:
    with suppress(OSError):
        os.link(source, target)
        return
    shutil.copy2(source, target)
