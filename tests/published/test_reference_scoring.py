"""Scores of published trajectories by the reference scoring, which is that of the published code."""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING

from pytest_super.metrics.reference import (
    reference_scores,
)
from tests.published.trajectories import Trajectory, expert_tasks, expert_trajectories
from tests.unit.test_reference_scoring import step

if TYPE_CHECKING:
    from pytest_super.store.trajectory import Step


def test_the_published_accuracies_are_re_made_wherever_the_gold_can_be_inferred() -> None:
    tasks = expert_tasks()
    golds = {
        name: task["inferred_answer"] for name, task in tasks.items() if task["inferred_answer"] is not None
    }
    compared = [trajectory for trajectory in expert_trajectories() if trajectory.task in golds]
    assert len(golds) == 35
    assert len(compared) == 70
    for trajectory in compared:
        scores = reference_scores(published_steps(trajectory), answer=golds[trajectory.task])
        assert scores.accuracy == trajectory.metrics["output_match"], (trajectory.agent, trajectory.task)


def test_the_published_submissions_and_entrypoints_are_re_made() -> None:
    tasks = expert_tasks()
    different = set()
    for trajectory in expert_trajectories():
        entrypoint = tasks[trajectory.task]["inferred_entrypoint"]
        scores = reference_scores(published_steps(trajectory), entrypoint=entrypoint)
        assert scores.submitted == trajectory.metrics["submitted"]
        if scores.script_executed != trajectory.metrics["entrypoint"]:
            different.add((trajectory.agent, trajectory.task))
    # Published before the scorer excluded runs that refused their arguments.
    assert different == {("swe-agent", "data_label_alignment")}


def published_steps(trajectory: Trajectory) -> list[Step]:
    """The steps with the submission as JSON: those of one agent are published as Python literals."""
    *steps, last = trajectory.steps
    if last.action.type == "exception":
        return steps
    if last.action.type == "submit":
        return [*steps, step(as_json(last.action.content), type="submit", seconds=0)]
    return trajectory.steps


def as_json(content: str) -> str:
    content = content.removeprefix("submit ")
    try:
        return json.dumps(ast.literal_eval(content))
    except (SyntaxError, ValueError):
        return content
