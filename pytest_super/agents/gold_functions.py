"""The gold agent on an item of a paper: puts the original files back and reports the expected values."""

from __future__ import annotations

from pathlib import PurePosixPath

from pytest_super.agents.gold import first_failure, run_to_end
from pytest_super.errors import SuperError
from pytest_super.metrics.self_report import expected_report
from pytest_super.sources import fetch
from pytest_super.tasks.paper_item import PaperItem
from pytest_super.trial.trial import Trial


class GoldFunctionsAgent:
    """Writes the files with masked functions as they were. It runs no experiment: its grader does that."""

    def __init__(self, task: PaperItem) -> None:
        self._task = task

    def run(self, trial: Trial) -> None:
        task = self._task
        assert task.repository is not None
        folder = fetch(task.repository, base=task.folder)
        steps = [
            run_to_end(trial, writing(PurePosixPath(folder.name, file), (folder / file).read_bytes()))
            for file in task.files
        ]
        if why := first_failure(steps):
            raise SuperError(why)
        trial.submit(expected_report(task.experiments))


def writing(path: PurePosixPath, data: bytes) -> str:
    """A cell that writes a file byte for byte."""
    return f"import pathlib\n_ = pathlib.Path({str(path)!r}).write_bytes({data!r})"
