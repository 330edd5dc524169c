"""A stored run as the page shows it: what can be read of its files, and the names of what cannot.

A run can be going on, and its files can be damaged or edited: nothing here raises for their content.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

from pytest_super.gate import GATE
from pytest_super.metrics.leaves import is_number
from pytest_super.reading import open_regular, read_bytes
from pytest_super.report.facts import OWN_WORDS
from pytest_super.report.failure_line import describe
from pytest_super.report.notebook import NOTEBOOK, Told, told_in
from pytest_super.store.activity import read_doing
from pytest_super.store.checked import checked_line
from pytest_super.store.json_lines import UNREADABLE, damage, escape_surrogates
from pytest_super.store.results import RUNNING, TRIAL_FOLDER, TrialResult, folder_name
from pytest_super.store.run_folder import last_reruns
from pytest_super.store.trajectory import Step
from pytest_super.store.verdict import VERDICT

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SOLVED, MISSED, ERROR, STOPPED, GOING_ON = "solved", "missed", "error", "stopped", "unfinished"
OUTCOMES = (SOLVED, MISSED, ERROR, STOPPED, GOING_ON)
# What is read first comes first.
ORDER = (GOING_ON, ERROR, MISSED, STOPPED, SOLVED)
# Names that are shown as they are; a damaged file can have longer ones.
LONGEST_NAME = 300
MOST_TROUBLE = 20


@dataclass(frozen=True, kw_only=True)
class ShownTrial:
    """One trial of the page."""

    result: TrialResult
    why: str
    """Why it is unsolved, or what it is doing."""

    @cached_property
    def outcome(self) -> str:
        if self.result.stop_reason == RUNNING:
            return GOING_ON
        if self.result.is_interrupted:
            return STOPPED
        if self.result.is_error:
            return ERROR
        return SOLVED if self.result.solved else MISSED

    @property
    def folder(self) -> str:
        """Relative to the run's. Made of checked parts, because the field `folder` can be edited."""
        return folder_name(self.result)


@dataclass(frozen=True, kw_only=True)
class ShownVerdict:
    """The content of verdict.json."""

    word: str
    lines: list[str]
    """Of each gate."""
    sets: list[list[str]]
    """Of each set next to the baseline: its name, its verdict, the points, their interval."""


@dataclass(frozen=True, kw_only=True)
class ShownRun:
    """What can be read of a run."""

    folder: Path
    facts: dict[str, Any]
    """The content of run.json; empty if it cannot be read."""
    trials: list[ShownTrial]
    """Unsolved ones first."""
    verdict: ShownVerdict | None = None
    """None without gates, and before their verdict."""
    unread: list[str] = field(default_factory=list)
    """What could not be read."""
    failures: list[str] = field(default_factory=list)
    """What failed after trials."""

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def trouble(self) -> list[str]:
        found = [*self.unread, *self.failures]
        more = len(found) - MOST_TROUBLE
        return [*found[:MOST_TROUBLE], f"and {more} more"] if more > 0 else found

    @property
    def max_errors(self) -> float | None:
        """The share of errors that the run allows; None if it names none."""
        given = self.facts.get("max_errors")
        return given if is_number(given) and 0 <= given <= 1 else None

    @property
    def ended(self) -> list[TrialResult]:
        """The results of the trials that ended by themselves."""
        return [one.result for one in self.trials if one.outcome in (SOLVED, MISSED, ERROR)]

    def trial(self, folder: str) -> ShownTrial | None:
        return next((one for one in self.trials if one.folder == folder), None)

    def neighbours(self, trial: ShownTrial) -> tuple[ShownTrial | None, ShownTrial | None]:
        """The trials before and after one of them."""
        around = [None, *self.trials, None]
        place = around.index(trial)
        return around[place - 1], around[place + 1]


def read_run(folder: Path) -> ShownRun:
    """The run in `folder`, which can be going on."""
    unread: list[str] = []
    results = list(read_listed(folder, unread))
    listed = {(one.id, one.epoch, one.rerun) for one in results}
    results += read_unlisted(folder, listed, unread)
    trials = []
    for result in last_reruns(results):
        try:
            trials.append(ShownTrial(result=result, why=why_of(result, folder)))
        except UNREADABLE as error:
            unread.append(f"the result of {result.name} is damaged: {damage(error)}")
    facts, verdict = read_facts(folder, unread), read_verdict(folder, unread)
    trials.sort(key=lambda one: ORDER.index(one.outcome))
    failures = list(read_trouble(folder))
    return ShownRun(
        folder=folder, facts=facts, trials=trials, verdict=verdict, unread=unread, failures=failures
    )


def read_facts(folder: Path, trouble: list[str]) -> dict[str, Any]:
    try:
        return dict(json.loads(content_of(folder, "run.json")))
    except UNREADABLE:
        trouble.append("run.json cannot be read")
        return {}


def read_verdict(folder: Path, trouble: list[str]) -> ShownVerdict | None:
    try:
        data = json.loads(content_of(folder, VERDICT))
        return ShownVerdict(
            word=str(data["verdict"]),
            lines=[line.removeprefix(GATE) for line in data["gates"]],
            sets=[set_row(name, one) for name, one in data["regression"].items()],
        )
    except FileNotFoundError:
        return None
    except UNREADABLE:
        trouble.append(f"{VERDICT} cannot be read")
        return None


def set_row(name: str, one: dict[str, Any]) -> list[str]:
    points, low, high = (f"{one[key]:+.1f}" for key in ("points", "low", "high"))
    return [name, str(one["verdict"]), points, f"{low} to {high}"]


def read_told(run: Path, trial: ShownTrial) -> Told:
    """What the trial's notebook has of its task. A trial that did not end by itself has none."""
    try:
        told = told_in(content_of(run, f"{trial.folder}/{NOTEBOOK}").decode())
    except UNREADABLE:
        return Told()
    return Told(**escape_surrogates(vars(told)))


def read_listed(folder: Path, trouble: list[str]) -> Iterator[TrialResult]:
    for number, line in enumerate(lines_of(folder, "results.jsonl", trouble), 1):
        try:
            yield usable(checked_line(line))
        except UNREADABLE as error:
            trouble.append(f"line {number} of results.jsonl cannot be read: {damage(error)}")


def read_unlisted(folder: Path, listed: set[Any], trouble: list[str]) -> Iterator[TrialResult]:
    """Trials that run, and those whose report had not arrived when the run died."""
    for path in (folder / "trials").glob("*/*/result.json"):
        if not TRIAL_FOLDER.fullmatch(path.parent.name):
            continue
        key = (path.parts[-3], *map(int, path.parts[-2].split(".")))
        if key in listed:
            continue
        name = str(path.relative_to(folder))
        try:
            result = usable(checked_line(content_of(folder, name)))
            if (result.id, result.epoch, result.rerun) == key:
                yield result
        except UNREADABLE as error:
            trouble.append(f"{name} cannot be read: {damage(error)}")


def usable(result: TrialResult) -> TrialResult:
    """The result, if its names and numbers can be shown. Raises ValueError."""
    names = (result.set, result.category, result.agent, result.model, result.headline, result.worker)
    if any(len(name or "") > LONGEST_NAME for name in (result.id, *names, *result.metrics)):
        raise ValueError("a name is too long")
    if result.epoch < 1 or result.rerun < 0:
        raise ValueError("it does not name a trial")
    if result.weight <= 0:
        raise ValueError("its weight is not above 0")
    return result


def why_of(result: TrialResult, folder: Path) -> str:
    """Raises what a damaged result causes."""
    # Reads all fields that the page shows, so that none of them fails later.
    described = describe(result)
    [list(words(result)) for words in OWN_WORDS.values()]
    if result.stop_reason == RUNNING:
        return str(read_doing(folder / folder_name(result)) or "")
    if result.error is not None:
        return result.error
    return "" if result.solved else described


def read_trouble(folder: Path) -> Iterator[str]:
    """Failures after trials, which change no figures."""
    for line in lines_of(folder, "trouble.jsonl", []):
        try:
            data = json.loads(line)
            yield f"after the trial {data['id']}: {data['error']}"
        except UNREADABLE:
            yield "a line of trouble.jsonl cannot be read"


def lines_of(run: Path, name: str, trouble: list[str]) -> Iterator[bytes]:
    """The lines that are not empty. A file that is not there yet has none."""
    try:
        with open_own(run, name) as file:
            yield from (line for line in file if line.strip())
    except FileNotFoundError:
        return
    except OSError as error:
        trouble.append(f"{PurePath(name).name} cannot be read: {error.strerror}")


def open_own(run: Path, name: str) -> BinaryIO:
    """Open a file of the run. Raises OSError, also for a link that leads out of the run's folder."""
    return open_regular(own_path(run, name))


def own_path(run: Path, name: str) -> Path:
    """Raises PermissionError for a link that leads out of the run's folder."""
    path = Path(os.path.realpath(run / name))
    if not path.is_relative_to(os.path.realpath(run)):
        raise PermissionError(errno.EPERM, "a link leads out of the run")
    return path


def content_of(run: Path, name: str) -> bytes:
    return read_bytes(own_path(run, name))


def readable_steps(run: Path, name: str, trouble: list[str]) -> list[Step]:
    """The steps in a file of the run that can be read. `trouble` gets a text for each other line."""
    found = []
    for number, line in enumerate(lines_of(run, name, trouble), 1):
        try:
            found.append(adapter().validate_python(escape_surrogates(json.loads(line))))
        except UNREADABLE:
            trouble.append(f"line {number} of {PurePath(name).name} is damaged or not complete")
    return found


@cache
def adapter() -> TypeAdapter[Step]:
    from pydantic import TypeAdapter

    return TypeAdapter(Step)
