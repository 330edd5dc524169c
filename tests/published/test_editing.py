"""Published edits: each leaves the file that it left, with the feedback of the published runs."""

import gzip
import json
from typing import Any

import pytest

from pytest_super.agents.react.format import FormatError, parse_edit
from tests.published.trajectories import data_folder
from tests.unit.test_editing import Disk

CORPUS = "super-edit-corpus-expert.jsonl.gz"


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


def test_every_published_edit_leaves_the_file_that_it_left() -> None:
    edits = published_edits()
    assert len(edits) == 311
    assert [edit["step"] for edit in edits if again(edit)[0] != edit["after"].encode()] == []
