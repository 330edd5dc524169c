"""Trials of an earlier run that need not run again: they are in the run's folder before its first trial.

One process puts them there, at the end of its collection. So a run that is killed has all of them, and can be
resumed like any other.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_super.agents.identity import is_in_image
from pytest_super.session.private_pytest import fixture_definitions, is_own
from pytest_super.session.run import RUN, Run
from pytest_super.session.start.trial_digests import Expected, expected_of, once_in_a_run
from pytest_super.session.trial.item import STORED, TaskItem
from pytest_super.session.trial.start_ahead import OUTCOMES
from pytest_super.store.json_lines import UNREADABLE, damage, read_json, read_object
from pytest_super.store.results import TrialResult, folder_name, read_result
from pytest_super.store.run_folder import last_results, take_trial
from pytest_super.store.stored_runs import scored_again
from pytest_super.tasks.task import Task
from pytest_super.words import command_with, counted

RESUMED_RUN: pytest.StashKey[ResumedRun] = pytest.StashKey()
NOTE = "resumed.json"

NOT_KNOWN = "a fixture, a hook or --super-mount takes part, whose changes cannot be noticed"
# By the name of a digest.
DIFFERENT = {
    "subject": "the subject differs",
    "conditions": "the conditions differ",
    "scoring": "the scoring differs",
    "metrics": "other metrics are computed",
}


class Stored(NamedTuple):
    """A trial of a stored run."""

    run: Path
    result: TrialResult


class ResumedRun:
    """An earlier run, whose valid trials are taken over if nothing that decides them has changed.

    They have the scores of a run that it was scored again as, if these are of now.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._path = run.path
        self._folder = Path(run.resumed)
        self._names: frozenset[str] = frozenset()
        self._expected: dict[int, Expected] = {}
        """By the identity of the task, whose epochs have the same."""

    def take_over(self, items: Sequence[TaskItem]) -> None:
        """Put what can be taken over of these trials into the run's folder, once for all processes.

        Raises pytest.UsageError if the earlier run cannot be read, and InfrastructureError.
        """
        self._names = frozenset(once_in_a_run(self._path / NOTE, lambda: self.taken_of(items))["taken"])

    def taken_of(self, items: Sequence[TaskItem]) -> dict[str, Any]:
        """The names of the trials that are now in the run's folder, and why the others are not."""
        stored = self.stored()
        taken: list[str] = []
        others: Counter[str] = Counter()
        for item in items:
            found = stored.get((item.task.id, item.epoch), [])
            reasons = [self.why_not(item, one.result) for one in found]
            if "" in reasons:
                self.take(item.task, found[reasons.index("")])
                taken.append(item.name)
            else:
                others[reasons[0] if reasons else "nothing valid is stored"] += 1
        return {"run": self._folder.name, "taken": taken, "others": others}

    def stored(self) -> dict[tuple[str, int], list[Stored]]:
        """The valid trials by task and epoch, with the newest scores first. Raises pytest.UsageError."""
        stored: dict[tuple[str, int], list[Stored]] = {}
        for folder in [*reversed(scored_again(self._folder)), self._folder]:
            try:
                # A time-out of pytest is an option of that run.
                for one in last_results(folder):
                    if one.is_scored and one.stop_reason != "timeout":
                        stored.setdefault((one.id, one.epoch), []).append(Stored(folder, one))
            except UNREADABLE as error:
                raise pytest.UsageError(f"--super-resume: {folder} cannot be read: {damage(error)}") from None
        return stored

    def why_not(self, item: TaskItem, stored: TrialResult) -> str:
        """Why the trial has to run; "" if the stored one stands for it."""
        if not is_known(item):
            return NOT_KNOWN
        answers = str(self.facts_of_stored.get("answers") or "")
        if stored.recorded and answers != self._run.settings.answers_of:
            return "its model's answers come from another record"
        try:
            what = self.expected(item).differs_from(stored)
        # What a hook raises here it raises in the trial as well, which then reports it.
        except (Exception, *OUTCOMES) as error:
            return f"a hook raised {type(error).__name__}"
        if what == "subject" and self.how_subject_differs:
            return f"{DIFFERENT[what]}: {self.how_subject_differs}"
        return what and DIFFERENT[what]

    def expected(self, item: TaskItem) -> Expected:
        """Raises what hooks of the project raise."""
        if id(item.task) not in self._expected:
            self._expected[id(item.task)] = expected_of(item)
        return self._expected[id(item.task)]

    @cached_property
    def facts_of_stored(self) -> dict[str, Any]:
        """What run.json of the earlier run says; empty if it cannot be read."""
        return read_object(self._folder / "run.json")

    @cached_property
    def how_subject_differs(self) -> str:
        """Say how the subject differs, as far as the files of the earlier run tell."""
        # Not at the top, for runs that take nothing over.
        from pytest_super.report.comparison import subject_lines

        try:
            return ", ".join(subject_lines(dict(self.facts_of_stored["subject"]), self._run.subject))
        except UNREADABLE:
            return ""

    def take(self, task: Task, one: Stored) -> None:
        """Raises OSError."""
        stored = one.result
        result = replace(
            stored,
            # It only describes the task, so it may have changed.
            category=task.category,
            rerun=0,
            folder=f"trials/{stored.id}/{stored.epoch}.0",
            resumed_from=stored.resumed_from or self._folder.name,
        )
        # Of a process that died in the midst of this.
        if os.path.exists(half := self._path / result.folder):
            shutil.rmtree(half)
        take_trial(one.run / folder_name(stored), self._path, result)

    def prepare(self, item: TaskItem) -> None:
        """Put the result of an item that was taken over into its stash. The item then runs nothing."""
        if item.name in self._names and STORED not in item.stash:
            path = self._path / "trials" / item.task.id / f"{item.epoch}.0" / "result.json"
            if result := read_result(path):
                item.stash[STORED] = result


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


def line_to_go_on(config: pytest.Config, run: Run) -> str:
    """The command line that runs what is left of a run, for a shell."""
    arguments = [str(one) for one in config.invocation_params.args]
    is_module = os.path.basename(sys.argv[0]) == "__main__.py"
    command = command_with(f"--super-resume={run.id}", arguments)
    return f"to go on: {'python -m ' if is_module else ''}{command}"


def taken_line(run: Path) -> str:
    """What a run takes over from an earlier one, and why it runs the others."""
    note = read_json(run / NOTE)
    taken, others = len(note["taken"]), note["others"]
    line = f"resume: {counted(taken, 'trial') if taken else 'no trial'} reused from {note['run']}"
    if not others:
        return f"{line}, none left to run"
    why = "; ".join(f"{reason} ({count})" for reason, count in others.items())
    return f"{line}, {counted(sum(others.values()), 'trial')} to run: {why}"
