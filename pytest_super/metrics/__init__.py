"""The metrics of a trial. Your own metric is a `Metric` with a function of the task and its `Evidence`."""

from pytest_super.metrics.evidence import Evidence, Landmark, Spent
from pytest_super.metrics.metric import Metric

__all__ = ["Evidence", "Landmark", "Metric", "Spent"]
