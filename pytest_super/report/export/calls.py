"""The whole calls of a run, one JSON line each: what was asked, and what the model said."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.errors import SuperError
from pytest_super.store.answers import FILE, read_answers
from pytest_super.store.json_lines import to_line
from pytest_super.store.results import folder_name

if TYPE_CHECKING:
    from pytest_super.report.export.trials import StoredTrials


def write_calls(trials: StoredTrials, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for result in trials.results:
            try:
                answers = read_answers(trials.run.folder / folder_name(result) / FILE)
            except SuperError as error:
                trials.unread.append(str(error))
                continue
            for call in answers.calls.values():
                trial = {"id": result.id, "epoch": result.epoch, "call": call.number}
                file.write(to_line({**trial, "request": answers.asked(call.number), **call.end}))
