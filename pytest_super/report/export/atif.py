"""ATIF-v1.7, the Agent Trajectory Interchange Format of Harbor: one JSON object for each trial.

By its RFC 0001 unknown keys are errors except in `extra`, step_ids count from 1, only steps of the source
`agent` have tool calls and metrics, and a result names a call of its own step.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_super.report.export.trials import (
    StoredTrials,
    TrialRecord,
    function_of,
    has_model_call,
    is_call,
    rest_of,
    to_json,
)
from pytest_super.store.trajectory import Step

VERSION = "ATIF-v1.7"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)


def write_atif(trials: StoredTrials, folder: Path) -> None:
    """Write `ID.EPOCH.json` for each trial into a folder. Raises OSError."""

    def file_of(record: TrialRecord) -> tuple[str, str]:
        name = f"{record.result.id}.{record.result.epoch}.json"
        return name, to_json(trajectory_of(record, trials.facts))

    for name, text in trials.converted(file_of):
        (folder / name).write_text(f"{text}\n")


def trajectory_of(record: TrialRecord, facts: dict[str, Any]) -> dict[str, Any]:
    result = record.result
    steps = [{"step_id": number, **step} for number, step in enumerate(steps_of(record), 1)]
    return {
        "schema_version": VERSION,
        "session_id": record.run,
        "trajectory_id": record.name,
        "agent": {
            "name": result.agent,
            # The format requires one. Agents of ours have none: the digest of their code and settings.
            "version": result.agent_version or result.subject or "unknown",
            "model_name": result.model,
        },
        "steps": steps,
        "final_metrics": {
            "total_prompt_tokens": record.known["prompt_tokens"],
            "total_completion_tokens": record.known["completion_tokens"],
            "total_cached_tokens": record.known["cached_tokens"],
            "total_cost_usd": record.known["cost_usd"],
            "total_steps": len(steps),
        },
        "extra": {
            "result": record.known,
            "expected": record.told.expected,
            "run": facts,
            "unread": record.unread,
        },
    }


def steps_of(record: TrialRecord) -> Iterator[dict[str, Any]]:
    if record.told.query is not None:
        yield {"source": "user", "message": record.told.query}
    elif not record.steps:
        # The format requires a step.
        yield {"source": "system", "message": record.result.error or "the trial has no steps"}
    for step in record.steps:
        yield agent_step(step, record) if step.origin == "agent" else system_step(step)


def agent_step(step: Step, record: TrialRecord) -> dict[str, Any]:
    used = {"prompt_tokens": step.prompt_tokens, "completion_tokens": step.completion_tokens}
    found = {
        **common(step),
        "source": "agent",
        "model_name": record.result.model,
        "message": step.thought,
        "metrics": used if has_model_call(step) else None,
        "extra": rest_of(step),
    }
    if not is_call(step):
        return {
            **found,
            "message": "\n".join(filter(None, (step.thought, step.action.content))),
            "observation": {"results": [{"content": step.observation}]},
        }
    call, (function, arguments) = f"call-{step.number}", function_of(step)
    return {
        **found,
        "tool_calls": [{"tool_call_id": call, "function_name": function, "arguments": arguments}],
        "observation": {"results": [{"source_call_id": call, "content": step.observation}]},
    }


def system_step(step: Step) -> dict[str, Any]:
    """A pre-executed step: the harness has run it, and the agent has seen it."""
    return {
        **common(step),
        "source": "system",
        "message": step.action.content,
        "observation": {"results": [{"content": step.observation}]},
        "extra": {**rest_of(step), "action": step.action.type, "thought": step.thought},
    }


def common(step: Step) -> dict[str, Any]:
    return {"timestamp": step.started if TIME.fullmatch(step.started) else None}
