"""`script_executed` of published trajectories."""

from __future__ import annotations

from pytest_super.metrics.script_executed import script_executed
from pytest_super.tasks.task import Entrypoint


def test_published_trajectories_get_their_published_value() -> None:
    from tests.published.trajectories import expert_tasks, expert_trajectories

    # The folders of entrypoints whose inferred file name is not enough.
    folders = {
        "inbedder": "alpaca_train",
        "mera": "lm-evaluation-harness",
        "pira": "Triggering",
        "mbib": "baseline",
    }
    different = set()
    tasks = expert_tasks()
    for trajectory in expert_trajectories():
        name = tasks[trajectory.task]["inferred_entrypoint"]
        if name is None:
            assert trajectory.metrics["entrypoint"] is None
            continue
        path = "/".join(filter(None, [folders.get(trajectory.task), name]))
        if script_executed(trajectory.steps, Entrypoint(path=path)) != trajectory.metrics["entrypoint"]:
            different.add((trajectory.agent, trajectory.task))
    assert different == {
        ("swe-agent", "data_label_alignment"),  # only refusals of arguments, published as 1
        ("react-super", "dpt"),  # only cells that failed or were interrupted
        ("react-super", "pira"),  # only cells that timed out and were not waited for
        ("swe-agent", "pira"),
    }
