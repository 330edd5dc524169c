"""Inspect AI's log of a run, as its version 0.3 reads it (`read_eval_log`, `inspect view`).

A file that ends in .eval: a zip archive of JSON files, one for each sample. Its other form, one JSON file, is
read as a whole, by us and by Inspect, which a run of thousands of trials is too large for.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from pytest_super.gate.figures import without_interrupted
from pytest_super.report.export.inspect_sample import sample_of, summary_of, time_of
from pytest_super.report.export.trials import StoredTrials, TrialRecord, to_json
from pytest_super.report.page.stored import GOING_ON
from pytest_super.report.summary import Group, metric_names
from pytest_super.store.results import TrialResult

VERSION = 2
TASK = "pytest-super"
# The format requires a model.
NO_MODEL = "none"


def write_inspect(trials: StoredTrials, path: Path) -> None:
    """Raises OSError."""
    summaries = []
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, text, summary in trials.converted(member_of):
            archive.writestr(name, text)
            summaries.append(summary)
        spec, plan = spec_of(trials), plan_of(trials)
        start = {"version": VERSION, "eval": spec, "plan": plan}
        archive.writestr("_journal/start.json", to_json(start))
        archive.writestr("summaries.json", to_json(summaries))
        header = {
            "version": VERSION,
            "status": status_of(trials),
            "eval": spec,
            "plan": plan,
            "results": results_of(trials.results),
            "stats": stats_of(trials.results),
        }
        archive.writestr("header.json", to_json(header))


def member_of(record: TrialRecord) -> tuple[str, str, dict[str, Any]]:
    """The name and the content of a sample's file, and its summary."""
    sample = sample_of(record)
    name = f"samples/{record.result.id}_epoch_{record.result.epoch}.json"
    return name, to_json(sample), summary_of(sample)


def spec_of(trials: StoredTrials) -> dict[str, Any]:
    run, facts = trials.run, trials.facts
    ids = list(dict.fromkeys(result.id for result in trials.results))
    model = facts.get("model")
    return {
        "eval_id": run.name,
        "run_id": run.name,
        "task_id": run.name,
        "task": TASK,
        "created": created(trials),
        "dataset": {"samples": len(ids), "sample_ids": ids},
        "model": model if isinstance(model, str) else NO_MODEL,
        "config": {"epochs": max((result.epoch for result in trials.results), default=None)},
        "packages": versions_of(facts),
        "metadata": {**facts, "failures_after_trials": run.failures, "unread": trials.unread},
        "scorers": [{"name": name, "metrics": [{"name": "mean"}]} for name in metric_names(trials.results)],
    }


def created(trials: StoredTrials) -> str:
    """The start of the first trial, or the time of the run's folder."""
    times = [time for result in trials.results if (time := time_of(result.started))]
    folder = datetime.fromtimestamp(os.path.getmtime(trials.run.folder), UTC).isoformat()
    return min(times, default=folder)


def versions_of(facts: dict[str, Any]) -> dict[str, str]:
    versions = facts.get("versions")
    return {str(name): str(one) for name, one in versions.items()} if isinstance(versions, dict) else {}


def plan_of(trials: StoredTrials) -> dict[str, Any]:
    agents = dict.fromkeys(result.agent for result in trials.results)
    return {"name": "plan", "steps": [{"solver": agent, "params": {}} for agent in agents]}


def status_of(trials: StoredTrials) -> str:
    if any(one.outcome == GOING_ON for one in trials.run.trials):
        return "started"
    return "cancelled" if any(result.is_interrupted for result in trials.results) else "success"


def results_of(results: Sequence[TrialResult]) -> dict[str, Any]:
    group = Group(results=without_interrupted(results))
    return {
        "total_samples": len(results),
        "completed_samples": len(group.valid),
        "scores": [score_of(name, group) for name in metric_names(results)],
    }


def score_of(name: str, group: Group) -> dict[str, Any]:
    """The mean as in the table of the terminal. Inspect's own `mean` does not know the tasks' weights."""
    mean = group.mean(name)
    scored = sum(result.metrics.get(name) is not None for result in group.valid)
    metric = "mean_over_tasks"
    return {
        "name": name,
        "scorer": name,
        "scored_samples": scored,
        "unscored_samples": group.trials - scored,
        "metrics": {} if mean is None else {metric: {"name": metric, "value": mean}},
    }


def stats_of(results: Sequence[TrialResult]) -> dict[str, str]:
    """When the first trial began and the last one ended."""
    began = [time for result in results if (time := time_of(result.started))]
    ended = [time for result in results if (time := time_of(result.started, result.wall_seconds or None))]
    return {"started_at": min(began, default=""), "completed_at": max(ended, default="")}
