"""Metrics: what a trial is worth. A metric of your own is a `Metric`, whose function is given `Evidence`."""

from pytest_super.metrics.evidence import Evidence, Landmark, Spent
from pytest_super.metrics.metric import Metric

__all__ = ["Evidence", "Landmark", "Metric", "Spent"]
