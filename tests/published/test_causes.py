"""The causes of the misses among SUPER's published expert trajectories."""

import ast
import json
from collections import Counter
from typing import Any

from pytest_super.metrics.cause import Cause, cause_of
from pytest_super.store.results import TrialResult
from pytest_super.tasks.task import Task
from tests.published.trajectories import Trajectory, expert_tasks, expert_trajectories

# Of the seven others that were submitted, the answer is not published.
KNOWN = {
    ("react-super", Cause.SPENT): 20,
    ("react-super", Cause.IN_SIGHT): 2,
    ("react-super", Cause.GAVE_UP): 4,
    ("react-super", Cause.NOT_RUN): 3,
    ("react-super", Cause.VALUE): 6,
    ("swe-agent", Cause.SPENT): 34,
    ("swe-agent", Cause.VALUE): 1,
}


def submission_of(trajectory: Trajectory) -> Any:
    last = trajectory.steps[-1].action
    text = last.content.removeprefix("submit").strip()
    if last.type != "submit" and not last.content.startswith("submit"):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return ast.literal_eval(text)


def result_of(trajectory: Trajectory) -> TrialResult:
    last, metrics = trajectory.steps[-1].action, trajectory.metrics
    ended = "compute" if "compute" in last.content else "context"
    return TrialResult(
        id=trajectory.task,
        set="expert",
        epoch=1,
        rerun=0,
        agent=trajectory.agent,
        headline="accuracy",
        solved=metrics["output_match"] == 1,
        submitted=last.type == "submit",
        stop_reason="submitted" if last.type == "submit" else ended,
        landmarks_found=[{"pattern": "", "step": 1 if metrics["checkpoints"] == 1 else None}],
        metrics={"accuracy": metrics["output_match"], "script_executed": metrics["entrypoint"]},
    )


def test_published_misses_have_these_causes() -> None:
    tasks, found = expert_tasks(), Counter[tuple[str, str]]()
    for trajectory in expert_trajectories():
        result, submission = result_of(trajectory), submission_of(trajectory)
        answer = tasks[trajectory.task]["inferred_answer"]
        if result.solved or (submission is not None and answer is None):
            continue
        task = Task(id="t", set="expert", query="q", answer=answer if answer is not None else 0)
        found[trajectory.agent, cause_of(task, result, submission)] += 1
    assert found == KNOWN
