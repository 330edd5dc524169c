"""`pytest-super rescore` on the published trajectories: every published score, or why it differs."""

import json
import tarfile
from typing import Any

import pytest

from pytest_super.cli import main
from tests.published.trajectories import ARCHIVE, data_folder, expert_tasks

# Tasks for which the agent submitted an empty answer.
SUBMITTED_NOTHING = ("discodisco", "dpt", "g-transformer", "transnormerllm")

DIFFERENCES = {
    **{("react-super", task, "submitted"): "a submission that is empty" for task in SUBMITTED_NOTHING},
    ("react-super", "dpt", "script_executed"): "step 22 did not end well (interrupted)",
    ("react-super", "pira", "script_executed"): "step 43 did not end well (timed_out)",
    ("swe-agent", "pira", "script_executed"): "step 27 did not end well (timed_out)",
    # Published before refusals of arguments were excluded.
    ("swe-agent", "data_label_alignment", "script_executed"): "does not follow from the stored steps",
}

Key = tuple[str, str]
Scores = dict[str, float | None]


@pytest.fixture(scope="module")
def expert(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the command writes of all of them."""
    folder = tmp_path_factory.mktemp("published")
    with tarfile.open(data_folder() / ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    answers, output = folder / "answers.jsonl", folder / "out.json"
    answers.write_text("".join(f"{json.dumps(row)}\n" for row in expert_tasks().values()))
    assert main(["rescore", str(folder), f"--answers={answers}", f"--json={output}"]) == 0
    told: dict[str, Any] = json.loads(output.read_text())
    return told


def key_of(one: dict[str, Any]) -> Key:
    return one["agent"].split()[0], one["task"]


def scores_of(expert: dict[str, Any], metric: str) -> dict[Key, Scores]:
    return {key_of(one): one["scores"][metric] for one in expert["trajectories"]}


def test_the_published_accuracies_are_re_made_to_the_last_bit(expert: dict[str, Any]) -> None:
    figures = scores_of(expert, "accuracy").values()
    known = [figure for figure in figures if figure["paper"] is not None]
    assert (len(figures), len(known)) == (90, 70)
    for figure in known:
        assert figure["published"] == figure["reference"] == figure["paper"]


def test_the_published_submissions_and_entrypoints_are_re_made_but_for_one(expert: dict[str, Any]) -> None:
    submitted = scores_of(expert, "submitted").values()
    assert all(figure["published"] == figure["reference"] for figure in submitted)
    figures = scores_of(expert, "script_executed")
    known = {key: figure for key, figure in figures.items() if figure["reference"] is not None}
    different = {key for key, figure in known.items() if figure["published"] != figure["reference"]}
    assert len(known) == 80
    assert different == {("swe-agent", "data_label_alignment")}
    assert all(figure["published"] is None for key, figure in figures.items() if key not in known)


def test_the_paper_s_way_agrees_with_the_published_entrypoints_but_for_two(expert: dict[str, Any]) -> None:
    figures = scores_of(expert, "script_executed")
    for agent, mean in {"react-super": 11 / 40, "swe-agent": 6 / 40}.items():
        known = [figures[key] for key in figures if key[0] == agent and figures[key]["published"] is not None]
        assert len(known) == 40
        assert sum(figure["published"] == figure["paper"] for figure in known) == 38
        assert sum(figure["paper"] or 0.0 for figure in known) / 40 == mean


def test_every_difference_of_the_published_set_is_told_with_its_reason(expert: dict[str, Any]) -> None:
    reasons = {
        (*key_of(one), metric): "; ".join(found)
        for one in expert["trajectories"]
        for metric, found in one["differences"].items()
    }
    assert reasons.keys() == DIFFERENCES.keys()
    assert all(DIFFERENCES[key] in reason for key, reason in reasons.items())


def test_the_published_means_are_those_of_the_folders(expert: dict[str, Any]) -> None:
    means = {
        total["agent"].split()[0]: total["all_published"]
        for total in expert["totals"]
        if total["metric"] == "accuracy"
    }
    assert means == {"react-super": pytest.approx(0.1444, abs=1e-4), "swe-agent": pytest.approx(1 / 6)}
