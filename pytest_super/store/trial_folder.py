"""The folder of a trial, written by the process that runs it. Nothing is lost when that process dies."""

import shutil
from dataclasses import replace
from pathlib import Path

from pytest_super.store.activity import Activity, ActivityFile
from pytest_super.store.answers import FILE
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import disk_errors, sync, to_line
from pytest_super.store.results import TrialResult
from pytest_super.store.trajectory import Step, step_to_data


class TrialFolder:
    def __init__(self, run: Path, start: TrialResult) -> None:
        """Take the next free rerun of the task and epoch in `start`. Raises InfrastructureError."""
        parent = run / "trials" / start.id
        with disk_errors(parent):
            parent.mkdir(parents=True, exist_ok=True)
            rerun = take_rerun(parent, start.epoch)
            folder = f"trials/{start.id}/{start.epoch}.{rerun}"
            self.path = run / folder
            self.start = replace(start, rerun=rerun, folder=folder)
            self._steps = (self.path / "trajectory.jsonl").open("a", encoding="utf-8")
            self._activity_file = ActivityFile(self.path)
        self.activity = Activity(self._activity_file.write, "sandbox start")
        self.write_result(self.start)

    def write_step(self, step: Step) -> None:
        """Append a step. It survives the end of this process when this returns."""
        with disk_errors(self.path):
            self._steps.write(to_line(step_to_data(step)))
            self._steps.flush()

    def write_result(self, result: TrialResult) -> None:
        with disk_errors(self.path):
            write_atomically(self.path / "result.json", to_line(result.to_data()))

    def close(self) -> None:
        """The steps and the result survive a crash of the machine when this returns."""
        self._activity_file.close()
        with disk_errors(self.path):
            self._steps.close()
            files = [self.path / name for name in ("trajectory.jsonl", "result.json", FILE)]
            sync(*(file for file in files if file.exists()))

    def discard(self) -> None:
        """Remove the folder of a trial in which nothing was done."""
        self._activity_file.close()
        self._steps.close()
        shutil.rmtree(self.path, ignore_errors=True)


def take_rerun(parent: Path, epoch: int) -> int:
    rerun = 0
    while True:
        # Creating a folder is atomic, so two processes never take the same rerun.
        try:
            (parent / f"{epoch}.{rerun}").mkdir()
        except FileExistsError:
            rerun += 1
        else:
            return rerun
