"""The controller's side of a run on disk: its folder, its results.jsonl, and results from trials' folders."""

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pytest_super.errors import InfrastructureError
from pytest_super.store.activity import read_doing
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.checked import checked_lines, checked_result
from pytest_super.store.json_lines import append, disk_errors, escape_surrogates, read_lines, sync, to_line
from pytest_super.store.results import RUNNING, TrialResult, most_repeats, read_result, read_results
from pytest_super.store.trajectory import read_trajectory
from pytest_super.words import counted, named

FACTS, RESULT, RESULTS = "run.json", "result.json", "results.jsonl"


class RunFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.results: dict[tuple[str, int, int], TrialResult] = {}
        self._written: list[TrialResult] = []
        self._size = 0
        """How many bytes of results were written."""

    def record(self, result: TrialResult) -> None:
        """Append the result of a trial, unless the trial has one.

        It is safe on the disk in the trial's folder, so the list is only synced at the end of the run.
        """
        key = (result.id, result.epoch, result.rerun)
        if key in self.results:
            return
        # Before it is written, so that the summary has it if the disk is full.
        self.results[key] = result
        line = to_line(vars(result))
        with disk_errors(self.path):
            append(self.path / RESULTS, line, is_synced=False)
        self._written.append(result)
        self._size += len(line)

    def ended_result(self, name: str) -> TrialResult | None:
        """The result of a trial that was over when its worker died, also if its report never arrived."""
        for _, result in written_results(self.path, task_id=name.partition("[")[0]):
            if result.name != name or result.is_error or result.is_interrupted:
                continue
            if result.stop_reason != RUNNING:
                # A full disk is told by the trials that run.
                with suppress(InfrastructureError):
                    self.record(result)
        return next((result for result in self.final() if result.name == name), None)

    def record_trouble(self, trouble: dict[str, Any]) -> None:
        """Append a failure after a trial. The trial's result does not change."""
        with disk_errors(self.path):
            append(self.path / "trouble.jsonl", to_line(trouble))

    def sweep(self, stop_reason: str, error: str) -> None:
        """Record the trials whose report never arrived. The arguments are for those that have not ended."""
        calls = list(read_lines(self.path / "calls.jsonl"))
        for folder, result in written_results(self.path, known=self.results.values()):
            if result.stop_reason == RUNNING:
                # The ledger comes last: it also has the calls after the last step.
                used = {**used_in_steps(folder), **used_in_calls(result, calls)}
                doing = read_doing(folder)
                why = escape_surrogates(f"{error}, at {doing}" if doing else error)
                result = replace(result, stop_reason=stop_reason, error=why, **used)
            self.record(result)
        # It is missing if no trial began, or if it could not be made, which was reported then.
        if (listed := self.path / RESULTS).exists():
            with disk_errors(self.path):
                sync(listed)

    def refuse_loss(self) -> None:
        """Raises InfrastructureError if the disk no longer has what this run has written."""
        names = [FACTS, *(f"{one.folder}/{RESULT}" for one in self._written if one.folder)]
        gone = [name for name in names if not (self.path / name).exists()]
        listed = self.path / RESULTS
        if (listed.stat().st_size if listed.exists() else 0) < self._size or gone:
            lines = set(map(to_line, read_lines(listed)))
            found = sum(to_line(vars(one)) in lines for one in self._written)
            raise InfrastructureError(
                f"{self.path} lost files in this run: {RESULTS} has {found} of "
                f"{counted(len(self._written), 'result')}; missing: {named(gone, 3) or 'no other file'}"
            )

    def final(self) -> list[TrialResult]:
        return last_reruns(self.results.values())


def written_results(
    run: Path, task_id: str = "*", known: Iterable[TrialResult] = ()
) -> Iterator[tuple[Path, TrialResult]]:
    """The result that each trial has written into its folder, with that folder; it may not have ended.

    Those of `known` trials are not read, because there are runs of thousands.
    """
    skipped = {(one.id, f"{one.epoch}.{one.rerun}") for one in known}
    paths = (run / "trials").glob(f"{task_id}/*/result.json")
    for path in sorted(path for path in paths if path.parts[-3:-1] not in skipped):
        if (result := read_result(path)) is not None:
            yield path.parent, result


def stored_results(run: Path) -> list[TrialResult]:
    """The listed trials, and those that ended unlisted when the run was killed. Raises one of UNREADABLE."""
    listed = read_results(run)
    return [*listed, *unlisted(run, listed)]


def unlisted(run: Path, listed: Iterable[TrialResult]) -> Iterator[TrialResult]:
    for _, result in written_results(run, known=listed):
        if result.stop_reason != RUNNING:
            yield result


def last_reruns(results: Iterable[TrialResult]) -> list[TrialResult]:
    """The last rerun of every trial, in the order in which the trials were recorded."""
    last: dict[tuple[str, int], TrialResult] = {}
    for result in results:
        key = (result.id, result.epoch)
        if key not in last or last[key].rerun < result.rerun:
            last[key] = result
    return list(last.values())


def last_results(run: Path) -> list[TrialResult]:
    """What a stored run says of each trial: the last rerun counts. Raises one of UNREADABLE."""
    listed = list(checked_lines(run / "results.jsonl"))
    return last_reruns([*listed, *map(checked_result, unlisted(run, listed))])


def trials_by_task(name: str, results: Iterable[TrialResult]) -> dict[str, list[TrialResult]]:
    """The valid trials of the run `name` by task, in the order of the runs that ran them and their epochs."""
    by_task: dict[str, list[TrialResult]] = {}
    for one in sorted(results, key=lambda one: (one.resumed_from or name, one.epoch)):
        if not one.is_error and not one.is_interrupted and one.headline_value is not None:
            by_task.setdefault(one.id, []).append(one)
    return by_task


def used_in_steps(folder: Path) -> dict[str, Any]:
    """What the agent used by the trial's trajectory, as fields of a result."""
    own = [step for step in read_trajectory(folder / "trajectory.jsonl") if step.origin == "agent"]
    return {
        "steps": len(own),
        "repeats": most_repeats(own),
        "prompt_tokens": sum(step.prompt_tokens for step in own),
        "completion_tokens": sum(step.completion_tokens for step in own),
    }


def used_in_calls(result: TrialResult, calls: list[dict[str, Any]]) -> dict[str, Any]:
    """What the trial used by the run's model calls, as fields of a result; empty if it made no calls."""
    name = f"{result.id}/{result.epoch}.{result.rerun}"
    own = [call for call in calls if call["trial"] == name]
    if not own:
        return {}
    costs = [call["cost_usd"] for call in own if call["cost_usd"] is not None]
    return {
        "prompt_tokens": sum(call["prompt_tokens"] for call in own),
        "completion_tokens": sum(call["completion_tokens"] for call in own),
        "cost_usd": sum(costs) if costs else None,
        "model_seconds": round(sum(call.get("seconds", 0.0) for call in own), 3),
        "waited_seconds": max(call.get("waited_seconds", 0.0) for call in own),
    }


def create_run(base: Path, facts: dict[str, Any], run_id: str) -> RunFolder:
    """A new run's folder under `base`, with `latest` pointing at it. Raises InfrastructureError."""
    runs = base / "runs"
    path = runs / run_id
    make_ignored(base, path)
    with disk_errors(base):
        write_atomically(path / FACTS, json.dumps(facts, indent=1) + "\n")
        # A rename, so that `latest` exists at any time, also while two runs start.
        link = runs / f".latest-{run_id}"
        link.symlink_to(run_id)
        link.replace(runs / "latest")
    return RunFolder(path)


def make_ignored(base: Path, path: Path) -> None:
    """Make the folder `path` below `base`, which git ignores from then on. Raises InfrastructureError."""
    with disk_errors(base):
        path.mkdir(parents=True, exist_ok=True)
        ignore = base / ".gitignore"
        if not ignore.exists():
            write_atomically(ignore, "*\n")


def take_trial(stored: Path, run: Path, result: TrialResult) -> Path:
    """Put the files of a stored trial into the folder of another run, with `result` in place of its own.

    Hard links where possible: whoever changes a file replaces it. Returns the new folder. Raises OSError.
    """
    folder = run / result.folder
    os.makedirs(folder)
    # An error can have come before the trial had a folder.
    with suppress(FileNotFoundError):
        link_files(str(stored), str(folder))
    # Last, because a folder without it, or with a part of it, is no trial.
    with open(f"{folder}/{RESULT}", "w", encoding="utf-8") as file:
        file.write(to_line(vars(result)))
    return folder


def link_files(source: str, target: str) -> None:
    """Link by names as text, because there are runs of thousands of trials."""
    with os.scandir(source) as entries:
        for entry in entries:
            if entry.is_dir():
                shutil.copytree(entry.path, f"{target}/{entry.name}", copy_function=link_or_copy)
            elif entry.name != RESULT:
                link_or_copy(entry.path, f"{target}/{entry.name}")


def link_or_copy(source: str, target: str) -> None:
    with suppress(OSError):
        os.link(source, target)
        return
    shutil.copy2(source, target)


def new_run_id() -> str:
    """An id that sorts by time, to thousandths of a second, and differs between two runs of one second."""
    now = datetime.now()
    return f"{now:%Y%m%d-%H%M%S}-{now.microsecond >> 12:02x}{os.urandom(1).hex()}"
