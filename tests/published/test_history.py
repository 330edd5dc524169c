"""Published histories, rebuilt from the steps of their trajectories."""

from __future__ import annotations

from pytest_super.agents.history import history_text
from tests.published.trajectories import expert_trajectories


def test_published_histories_have_every_action_whole_and_in_order() -> None:
    for run in expert_trajectories():
        text, end = history_text(run.steps, fenced=True), 0
        for taken in run.steps:
            end = text.index(f"<content>\n{taken.action.content}\n</content>\nObservation: ```\n", end)
        assert text.endswith("\n```\n\n")
        assert len(text) < 60_000 + sum(
            len(taken.action.content + taken.thought) + 600 for taken in run.steps
        )
