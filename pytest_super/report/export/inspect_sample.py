"""A trial as a sample of Inspect AI's log, and the summary of a sample that its viewer lists."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pytest_super.report.export.steps import function_of, is_call, rest_of
from pytest_super.store.results import TrialResult
from pytest_super.store.trajectory import Step
from pytest_super.words import shortened

if TYPE_CHECKING:
    from pytest_super.report.export.trials import TrialRecord

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
    """The infrastructure's failure. That of an agent is no error: its trial is scored."""
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
