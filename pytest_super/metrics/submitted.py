"""Submitted: whether the agent submitted an answer, right or wrong."""

from operator import attrgetter

from pytest_super.metrics.metric import Metric

SUBMITTED = Metric(
    name="submitted",
    compute=lambda _task, evidence: float(evidence.submitted),
    reference=attrgetter("submitted"),
    best=1.0,
)
