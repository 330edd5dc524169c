"""Inspect AI's log of a run, as its version 0.3 reads it (`read_eval_log`, `inspect view`).

A file that ends in .eval: a zip archive of JSON files, one for each sample. Its other form, one JSON file, is
read as a whole, by us and by Inspect, which a run of thousands of trials is too large for.
"""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from pytest_super.gate.figures import without_interrupted
from pytest_super.report.export.trials import (
    StoredTrials,
    TrialRecord,
    function_of,
    is_call,
    rest_of,
    to_json,
)
from pytest_super.report.page.stored import GOING_ON
from pytest_super.report.summary import Group, metric_names
from pytest_super.store.results import TrialResult
from pytest_super.store.trajectory import Step
from pytest_super.words import shortened

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
        archive.writestr("_journal/start.json", to_json({"version": VERSION, "eval": spec, "plan": plan}))
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


# Characters of a text in a summary: Inspect cuts its own there too.
LONGEST = 1000


def sample_of(record: TrialRecord) -> dict[str, Any]:
    result, known = record.result, record.known
    wall, waited = known["wall_seconds"], known["waited_seconds"]
    return {
        "id": result.id,
        "epoch": result.epoch,
        "uuid": record.name,
        # The format requires texts here.
        "input": record.told.query or "",
        "target": record.told.expected or "",
        "sandbox": {"type": result.sandbox} if result.sandbox else None,
        "messages": list(messages_of(record)),
        "output": {"model": result.model or "", "choices": [], "completion": record.submission or ""},
        "scores": scores_of(record),
        "metadata": {**known, "unread": record.unread},
        "model_usage": usage_of(known),
        "started_at": time_of(result.started),
        "completed_at": time_of(result.started, wall),
        "total_time": wall,
        # As Inspect defines it: without waiting for rate limits and retries.
        "working_time": None if wall is None else round(wall - (waited or 0.0), 3),
        "error": error_of(result),
    }


def summary_of(sample: dict[str, Any]) -> dict[str, Any]:
    """What the viewer lists of a sample: only short values."""
    same = ("id", "epoch", "uuid", "model_usage", "started_at", "completed_at", "total_time", "working_time")
    return {
        **{name: sample[name] for name in same},
        "input": short(sample["input"]),
        "target": short(sample["target"]),
        "metadata": {
            name: short(value)
            for name, value in sample["metadata"].items()
            if not isinstance(value, list | dict | None)
        },
        "scores": {
            name: {key: short(value) for key, value in score.items()}
            for name, score in sample["scores"].items()
        },
        "error": sample["error"] and short(sample["error"]["message"]),
        "completed": True,
        "message_count": len(sample["messages"]),
    }


def short(value: Any) -> Any:
    return shortened(value, LONGEST) if isinstance(value, str) else value


def scores_of(record: TrialRecord) -> dict[str, Any]:
    """The metrics that have a value. Inspect has no score without one, so the others are left out."""
    result = record.result
    scores: dict[str, Any] = {
        name: {"value": value} for name, value in result.metrics.items() if value is not None
    }
    if result.headline in scores:
        scores[result.headline] |= {"answer": record.submission, "explanation": result.difference or None}
    return scores


def usage_of(known: dict[str, Any]) -> dict[str, Any]:
    prompt, completion = known["prompt_tokens"], known["completion_tokens"]
    if known["model"] is None or prompt is None or completion is None:
        return {}
    return {
        known["model"]: {
            "input_tokens": prompt,
            "output_tokens": completion,
            "total_tokens": prompt + completion,
            "input_tokens_cache_read": known["cached_tokens"],
            "total_cost": known["cost_usd"],
        }
    }


def error_of(result: TrialResult) -> dict[str, str] | None:
    """The infrastructure's failure. An agent that fails is scored, so its failure is not an error."""
    if result.error is None:
        return None
    return {"message": result.error, "traceback": "", "traceback_ansi": ""}


def time_of(started: str, seconds: float | None = 0.0) -> str | None:
    """A time in ISO 8601, so many seconds later; None if one of them is not known."""
    try:
        began = datetime.fromisoformat(started)
        return None if seconds is None else (began + timedelta(seconds=seconds)).isoformat()
    except (ValueError, OverflowError):
        return None


def messages_of(record: TrialRecord) -> Iterator[dict[str, Any]]:
    if record.told.query is not None:
        yield {"id": "query", "role": "user", "source": "input", "content": record.told.query}
    for step in record.steps:
        yield action_message(step, record.result)
        yield observation_message(step)


def action_message(step: Step, result: TrialResult) -> dict[str, Any]:
    """`input` is Inspect's word for messages that were there before the agent began."""
    is_own = step.origin == "agent"
    message = {
        "id": f"{step.number}-action",
        "role": "assistant",
        "source": ("generate" if result.model else None) if is_own else "input",
        "model": result.model if is_own else None,
        "content": step.thought,
        "metadata": rest_of(step),
    }
    if not is_call(step):
        return {**message, "content": "\n".join(filter(None, (step.thought, step.action.content)))}
    function, arguments = function_of(step)
    call = {"id": call_of(step), "function": function, "arguments": arguments}
    return {**message, "tool_calls": [{**call, "type": "function"}]}


def observation_message(step: Step) -> dict[str, Any]:
    message = {"id": f"{step.number}-observation", "content": step.observation}
    if not is_call(step):
        return {**message, "role": "user"}
    return {**message, "role": "tool", "tool_call_id": call_of(step), "function": function_of(step)[0]}


def call_of(step: Step) -> str:
    return f"call-{step.number}"
