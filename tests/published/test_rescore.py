"""`pytest-super rescore` on the published trajectories: every published score, or why it differs."""

from __future__ import annotations

import json
import tarfile
from typing import Any

import pytest

from pytest_super.cli import main
from tests.published.trajectories import ARCHIVE, RECOVERED, data_folder


@pytest.fixture(scope="module")
def expert(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the command writes of all of them."""
    data, folder = data_folder(), tmp_path_factory.mktemp("published")
    with tarfile.open(data / ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    output = folder / "out.json"
    answers = f"--answers={data / RECOVERED}"
    assert main(["rescore", str(folder), answers, f"--json={output}"]) == 0
    told: dict[str, Any] = json.loads(output.read_text())
    return told


# Where script_executed differs: agent and task. The answers have the names of scripts without their folders,
# so that in the paper's way a script in a folder is another one.
COUNTED = "the published code counts step"


# Tasks for which the agent submitted an empty answer.
SUBMITTED_NOTHING = ("discodisco", "dpt", "g-transformer", "transnormerllm")


OTHERWISE = {
    ("react-super", "inbedder"): COUNTED,
    ("react-super", "mera"): COUNTED,
    ("react-super", "pira"): COUNTED,
    ("swe-agent", "mbib"): COUNTED,
    ("swe-agent", "mera"): COUNTED,
    ("swe-agent", "pira"): COUNTED,
    ("react-super", "dpt"): "step 22, which was left running",
    # Published before refusals of arguments were excluded.
    ("swe-agent", "data_label_alignment"): "the stored figure does not follow",
}


def test_the_published_accuracies_are_re_made_to_the_last_bit(expert: dict[str, Any]) -> None:
    figures = [one["scores"]["accuracy"] for one in expert["trajectories"]]
    known = [figure for figure in figures if figure["paper"] is not None]
    assert (len(figures), len(known)) == (90, 70)
    for figure in known:
        assert figure["published"] == figure["reference"] == figure["paper"]


def test_the_published_entrypoints_are_re_made_but_for_one(expert: dict[str, Any]) -> None:
    figures = {key_of(one): one["scores"]["script_executed"] for one in expert["trajectories"]}
    known = {key: figure for key, figure in figures.items() if figure["reference"] is not None}
    different = {key for key, figure in known.items() if figure["published"] != figure["reference"]}
    assert len(known) == 80
    assert different == {("swe-agent", "data_label_alignment")}
    assert all(figure["published"] is None for key, figure in figures.items() if key not in known)


def test_every_difference_of_the_published_set_is_told_with_its_reason(expert: dict[str, Any]) -> None:
    reasons = {
        (difference["metric"], *key_of(one)): "; ".join(difference["reasons"])
        for one in expert["trajectories"]
        for difference in one["differences"]
    }
    empty = {("submitted", "react-super", task): "a submission that is empty" for task in SUBMITTED_NOTHING}
    expected = {**empty, **{("script_executed", *key): reason for key, reason in OTHERWISE.items()}}
    assert reasons.keys() == expected.keys()
    assert all(expected[key] in reason for key, reason in reasons.items())


def test_the_published_means_are_those_of_the_folders(expert: dict[str, Any]) -> None:
    means = {
        total["agent"].split()[0]: total["all_published"]
        for total in expert["totals"]
        if total["metric"] == "accuracy"
    }
    assert means == {"react-super": pytest.approx(0.1444, abs=1e-4), "swe-agent": pytest.approx(1 / 6)}


def key_of(one: dict[str, Any]) -> tuple[str, str]:
    return one["agent"].split()[0], one["task"]
