"""Landmarks (SUPER, 3.1.2): the portion of a task's patterns that match the output of the agent's cells."""

from operator import attrgetter

from pytest_super.metrics.metric import Metric

LANDMARKS = Metric(
    name="landmarks",
    applies=lambda task: bool(task.landmarks),
    compute=lambda task, trial: sum(one.is_hit for one in trial.landmarks) / len(task.landmarks),
    reference=attrgetter("landmarks"),
    best=1.0,
)
