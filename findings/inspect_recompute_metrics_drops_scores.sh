#!/usr/bin/env bash
# inspect-ai 0.3.285, Python 3.11, Linux.
#
# `recompute_metrics` computes the metrics that the header's scorers name, and the field `metrics` of a scorer is
# optional. Of a log whose scorers name none it replaces the stored results by an empty list, without an error or a
# warning, although each sample has its score: only what the header names is kept.
#
# Seen: one score with the mean 1.0 before, no score after; with `metrics=[EvalMetricDefinition(name="mean")]` one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-compile inspect-ai==0.3.285 'openai>=3.4'
cd "$folder"
cat > look.py <<'PY'
from inspect_ai.log import (
    EvalConfig, EvalDataset, EvalLog, EvalMetric, EvalResults, EvalSample, EvalScore, EvalSpec, recompute_metrics,
)
from inspect_ai.log._log import EvalMetricDefinition, EvalScorer
from inspect_ai.scorer import Score


def scores(metrics):
    scorer = EvalScorer(name="accuracy", metrics=metrics)
    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00", task="t", dataset=EvalDataset(), model="none/none",
        config=EvalConfig(), scorers=[scorer],
    )
    sample = EvalSample(id="a", epoch=1, input="q", target="1", scores={"accuracy": Score(value=1.0)})
    mean = EvalScore(name="accuracy", scorer="accuracy", metrics={"mean": EvalMetric(name="mean", value=1.0)})
    results = EvalResults(total_samples=1, completed_samples=1, scores=[mean])
    log = EvalLog(status="success", eval=spec, results=results, samples=[sample])
    recompute_metrics(log)
    return [(one.name, one.metrics["mean"].value) for one in log.results.scores]


unnamed, named = scores(None), scores([EvalMetricDefinition(name="mean")])
print("after recompute_metrics, of scorers without metrics:", unnamed, "and with the mean:", named)
assert unnamed == [] and named == [("accuracy", 1.0)]
PY
venv/bin/python look.py
