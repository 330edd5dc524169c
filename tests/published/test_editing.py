"""Published edits: each leaves the file that it left, with the feedback of the published runs."""

import gzip
import json
from collections import Counter
from typing import Any

import pytest

from pytest_super.agents.react.format import FormatError, parse_edit
from tests.published.trajectories import data_folder
from tests.unit.test_editing import Disk

CORPUS = "super-edit-corpus-expert.jsonl.gz"

# Feedback that differs from that of the published runs: how often, and why.
DIFFERENCES = {
    "several edits in one": (27, "the parser of answers explains how to write an action"),
    "no marks": (2, "the parser of answers explains how to write an action"),
    "more lines than the file": (1, "the published text does not show partial matches"),
}


def published_edits() -> list[dict[str, Any]]:
    path = data_folder() / CORPUS
    if not path.is_file():
        pytest.skip(f"needs {CORPUS}")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def again(edit: dict[str, Any]) -> tuple[bytes, str]:
    """The file after the edit, and the feedback."""
    disk = Disk()
    disk.write(edit["file"], edit["before"].encode())
    try:
        change = parse_edit(edit["edit"])
    except FormatError as error:
        feedback = str(error)
    else:
        feedback = disk.edit(change.path, change.before, change.after)[0]
    return disk.read(edit["file"]), feedback


def difference(edit: dict[str, Any], feedback: str) -> str:
    if edit["kind"] == "multiple markers":
        return "several edits in one"
    if edit["kind"] == "nolines":
        return "no marks"
    assert feedback.startswith(edit["feedback"])
    return "more lines than the file"


def test_every_published_edit_leaves_the_file_that_it_left() -> None:
    edits = published_edits()
    assert len(edits) == 311
    assert [edit["step"] for edit in edits if again(edit)[0] != edit["after"].encode()] == []


def test_an_agent_is_told_what_it_was_told_but_where_it_is_told_more() -> None:
    found = Counter(
        difference(edit, feedback)
        for edit in published_edits()
        if (feedback := again(edit)[1]) != edit["feedback"]
    )
    assert found == {kind: count for kind, (count, _) in DIFFERENCES.items()}
