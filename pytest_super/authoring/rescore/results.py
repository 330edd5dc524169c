"""The results of a stored run as the present tasks score its trials, and the new run that has them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pytest_super.authoring.rescore.scores import Rescored
from pytest_super.authoring.stored_trials import stored_trials
from pytest_super.errors import SuperError
from pytest_super.metrics.cause import cause_of
from pytest_super.metrics.evidence import Evidence
from pytest_super.metrics.landmarks import LANDMARKS
from pytest_super.metrics.registry import installed_metrics, scored
from pytest_super.report.notebook import write_notebook
from pytest_super.session.comparability import facts_of_scoring, has_conditions_of
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import UNREADABLE, append, damage, disk_errors, read_json, to_line
from pytest_super.store.results import FORMAT, TrialResult, folder_name
from pytest_super.store.run_folder import new_run_id, take_trial
from pytest_super.tasks.task import Task

UNKNOWN = "no task of this name is given"
OTHER_CONDITIONS = "its conditions differ from those of the trial (query, repository, prefix, limits)"
Facts = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class NewResult:
    """A trial of the run: its stored result, and the one that takes its place."""

    old: TrialResult
    new: TrialResult
    rescored: Rescored | None = None
    """None for an infrastructure failure, which is not scored."""


@dataclass(frozen=True, kw_only=True)
class NewResults:
    """The trials of the rescored run, and those that it does not have."""

    results: list[NewResult] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    """Names of trials by the reason."""


def new_results(run: Path, rescored: Sequence[Rescored], tasks: Mapping[str, Task]) -> NewResults:
    """Interrupted trials stay out, and are not named. Raises SuperError if the run cannot be read."""
    found = NewResults()
    by_trial = {(one.name, one.trial.result.rerun): one for one in rescored}
    for old in stored_trials(run, ()):
        if old.is_interrupted:
            continue
        again = by_trial.get((old.name, old.rerun))
        try:
            new = new_error(old, tasks) if old.is_error else new_result(old, again)
        except SuperError as error:
            found.left_out.setdefault(str(error), []).append(old.name)
        else:
            folder, source = f"trials/{old.id}/{old.epoch}.0", old.resumed_from or run.name
            new = replace(new, rerun=0, folder=folder, resumed_from=source)
            found.results.append(NewResult(old=old, new=new, rescored=None if old.is_error else again))
    return found


def new_error(old: TrialResult, tasks: Mapping[str, Task]) -> TrialResult:
    """An infrastructure failure stays one, of the same task. Raises SuperError."""
    if old.id not in tasks:
        raise SuperError(UNKNOWN)
    # A trial whose sandbox never started has none.
    if old.conditions and not has_conditions_of(tasks[old.id], old):
        raise SuperError(OTHER_CONDITIONS)
    return old


def new_result(old: TrialResult, again: Rescored | None) -> TrialResult:
    """Raises SuperError if the trial cannot be scored as it would be in a run."""
    if again is None:
        raise SuperError("its files cannot be read or scored")
    if again.scored is None:
        raise SuperError(UNKNOWN)
    task, evidence = again.scored
    if not has_conditions_of(task, old):
        raise SuperError(OTHER_CONDITIONS)
    metrics, mode = installed_metrics(), again.trial.scoring
    facts = facts_of_scoring(task, metrics, mode)
    is_scored_alike = facts["scoring"] == old.scoring
    refuse_unknown(old, task, evidence, is_scored_alike=is_scored_alike)
    fields = scored(metrics, task, evidence, mode)
    if hides_landmark(old, evidence):
        fields["metrics"][LANDMARKS.name] = None
    own = {metric.name for metric in metrics}
    # Of a conftest, which is not read: they are as known as what they follow from.
    others = {name: value for name, value in old.metrics.items() if name not in own}
    fields["metrics"] |= others if is_scored_alike else dict.fromkeys(others)
    facts["applicable"] += [name for name in old.applicable if name in others]
    facts["metric_versions"] |= {
        name: version for name, version in old.metric_versions.items() if name in others
    }
    if task.grade is None:
        fields |= {"graded": [], "graded_in": "", "whole_file": None}
    new = replace(old, category=task.category, **facts, **fields)
    return replace(new, cause=cause_of(task, new, evidence.submission))


def refuse_unknown(old: TrialResult, task: Task, evidence: Evidence, *, is_scored_alike: bool) -> None:
    """Raises SuperError if what is stored does not say how the trial is scored now."""
    if old.headline and old.headline not in {metric.name for metric in installed_metrics()}:
        raise SuperError(f"its headline metric {old.headline} is that of a conftest.py, which is not read")
    if task.grade is not None and not is_scored_alike:
        raise SuperError("it is graded, and scored otherwise than in the run: run its task again")
    is_provided = task.repository is not None and task.repository.provide
    if task.entrypoint is not None and is_provided and evidence.repository is None:
        raise SuperError("the name of its repository's folder is unknown: its source is not in the cache")


def hides_landmark(old: TrialResult, evidence: Evidence) -> bool:
    """Whether a landmark that the run did not look for can be in output that is not stored."""
    known = {found["pattern"] for found in old.landmarks_found}
    is_missed = any(not one.is_hit and one.pattern not in known for one in evidence.landmarks)
    return is_missed and any(step.omitted_characters for step in evidence.steps if step.origin == "agent")


def read_facts(run: Path) -> Facts:
    """The content of a run's run.json. Raises SuperError."""
    try:
        facts: Facts = read_json(run / "run.json")
        if facts["format"] != FORMAT:
            raise SuperError(f"{run}: the format of the run is {facts['format']}, not {FORMAT}")
    except FileNotFoundError:
        raise SuperError(f"there is no run in {run}: --write needs the folder of one run") from None
    except UNREADABLE as error:
        raise SuperError(f"{run}: its run.json cannot be read: {damage(error)}") from None
    return facts


def write_run(run: Path, facts: Facts, results: Sequence[NewResult], arguments: Sequence[str]) -> Path:
    """The folder of the new run, which is not `latest`. Raises InfrastructureError and leaves nothing."""
    id = new_run_id()
    new, draft = run.parent / id, run.parent / f".{id}"
    facts = {
        **facts,
        "id": id,
        "rescored": run.name,
        "arguments": list(arguments),
        "versions": {**facts.get("versions", {}), "pytest-super": version("pytest-super")},
    }
    try:
        with disk_errors(run.parent):
            for one in results:
                write_trial(run, draft, one)
            append(draft / "results.jsonl", "".join(to_line(one.new.to_data()) for one in results))
            write_atomically(draft / "run.json", json.dumps(facts, indent=1) + "\n")
            # A rename, so that nobody ever sees a part of the run.
            draft.rename(new)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return new


def write_trial(run: Path, draft: Path, one: NewResult) -> None:
    """Raises OSError and InfrastructureError."""
    folder = take_trial(run / folder_name(one.old), draft, one.new)
    if one.rescored is None or one.rescored.scored is None:
        return
    task, _ = one.rescored.scored
    write_notebook(folder, task, one.new, one.rescored.trial.steps)
