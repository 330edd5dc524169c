"""The published rule for reports of papers, on reports that a person has judged by it."""

import json
from typing import Any

import pytest

from pytest_super.metrics.reference_report import reference_report
from pytest_super.metrics.self_report import expected_report
from pytest_super.tasks.paper import Experiment, numbered

ONE: dict[str, Any] = {"IoU": 0.5}
TWO: dict[str, Any] = {"loss": 2.0, "FID": 400}
LISTS: dict[str, Any] = {"IIF": [0.5], "IGF": [1e-8]}
ZERO: dict[str, Any] = {"a": 0}
NEGATIVE: dict[str, Any] = {"a": -0.5}


def experiments(*results: dict[str, Any]) -> list[Experiment]:
    checks = [
        [{"name": name, "json": {"file": "o.json"}, "expected": value} for name, value in one.items()]
        for one in results
    ]
    return numbered(Experiment.model_validate({"command": "true", "result": one}) for one in checks)


# The recorded results of the experiments, what an agent reports, and whether it passes.
JUDGED: list[tuple[list[dict[str, Any]], str, int]] = [
    ([ONE], '{"Experiment 1": {"IoU": 0.5}}', 1),
    # Off by exactly 5 %, which still passes, and by more.
    ([{"x": 20}], '{"Experiment 1": {"x": 21}}', 1),
    ([ONE], '{"Experiment 1": {"IoU": 0.526}}', 0),
    # Numbers in quotes, at any depth.
    ([ONE], '{"Experiment 1": {"IoU": "0.5"}}', 1),
    ([ONE], '{"Experiment 1": {"IoU": " 5e-1 "}}', 1),
    ([ONE], '{"Experiment 1": "{\\"IoU\\": 0.5}"}', 1),
    ([LISTS], '{"Experiment 1": {"IIF": ["0.5"], "IGF": "[1e-8]"}}', 1),
    # Other texts are no numbers.
    ([ONE], '{"Experiment 1": {"IoU": "about 0.5"}}', 0),
    ([ONE], '{"Experiment 1": {"IoU": "\'0.5\'"}}', 0),
    # The report is JSON, without a fence and in its own quotes.
    ([ONE], '```json\n{"Experiment 1": {"IoU": 0.5}}\n```', 0),
    ([ONE], "{'Experiment 1': {'IoU': 0.5}}", 0),
    ([ONE], "null", 0),
    ([ONE], '[{"IoU": 0.5}]', 0),
    # Names are those of the task.
    ([ONE], '{"Experiment 1": {"iou": 0.5}}', 0),
    ([ONE], '{"IoU": 0.5}', 0),
    ([ONE], '{"Experiment 1": {"IoU": 0.5, "mAP": 7}, "Experiment 2": {}}', 1),
    # A list stays a list, and a scalar a scalar.
    ([LISTS], '{"Experiment 1": {"IIF": [0.5], "IGF": [1e-8]}}', 1),
    ([LISTS], '{"Experiment 1": {"IIF": 0.5, "IGF": 1e-8}}', 0),
    ([ONE], '{"Experiment 1": {"IoU": [0.5]}}', 0),
    # A list is compared as far as the reported one goes.
    ([LISTS], '{"Experiment 1": {"IIF": [0.5], "IGF": []}}', 1),
    ([LISTS], '{"Experiment 1": {"IIF": [], "IGF": []}}', 0),
    # The mean over an experiment's values decides: one can be wrong by up to 10 % if the other is right.
    ([TWO], '{"Experiment 1": {"loss": 2.18, "FID": 400}}', 1),
    ([TWO], '{"Experiment 1": {"loss": 2.22, "FID": 400}}', 0),
    ([TWO], '{"Experiment 1": {"FID": 400}}', 0),
    # All experiments must be right.
    ([ONE, TWO], '{"Experiment 1": {"IoU": 0.5}, "Experiment 2": {"loss": 2, "FID": 400}}', 1),
    ([ONE, TWO], '{"Experiment 1": {"IoU": 0.6}, "Experiment 2": {"loss": 2, "FID": 400}}', 0),
    # An expected zero is never met, and a negative value always.
    ([ZERO], '{"Experiment 1": {"a": 0}}', 0),
    ([NEGATIVE], '{"Experiment 1": {"a": 1000000000}}', 1),
    ([NEGATIVE], '{"Experiment 1": {"a": "no"}}', 0),
]


@pytest.mark.parametrize(("results", "report", "passes"), JUDGED)
def test_a_report_passes_as_the_published_rule_says(
    results: list[dict[str, Any]], report: str, passes: int
) -> None:
    assert reference_report(experiments(*results), report) == passes


@pytest.mark.parametrize("results", [[ONE], [TWO, ONE], [LISTS], [LISTS, ONE, TWO]])
def test_the_recorded_results_pass_as_a_text_and_as_a_value(results: list[dict[str, Any]]) -> None:
    made = experiments(*results)
    gold = expected_report(made)
    assert gold == {f"Experiment {place}": one for place, one in enumerate(results, 1)}
    assert reference_report(made, gold) == reference_report(made, json.dumps(gold)) == 1.0
