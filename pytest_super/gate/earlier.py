"""Earlier runs of the same subject: their trials count as further epochs, their comparisons as looks.

So running a failed job again until it passes is not a way to pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_super.digests import digest
from pytest_super.gate.errors import decide_nothing
from pytest_super.store.checked import checked_result
from pytest_super.store.json_lines import UNREADABLE, read_json
from pytest_super.store.results import TrialResult
from pytest_super.store.run_folder import last_reruns, stored_results
from pytest_super.store.stored_runs import run_folders
from pytest_super.store.verdict import was_compared


@dataclass(frozen=True, kw_only=True)
class EarlierRuns:
    """The runs of one subject that were compared with one baseline."""

    trials: Sequence[TrialResult] = ()
    """Each names the run that ran it, in `resumed_from`."""
    looks: int = 0
    """How many of the runs have ended with a comparison."""
    subjects: int = 0
    """How many other subjects were compared with the baseline."""

    def like(self, own: Sequence[TrialResult], run: str) -> list[TrialResult]:
        """The trials that differ from those of a run by chance alone, each once.

        `own` are the results of the run with the id `run`, which can have taken over some of these trials.
        Then it has run the errors among them again.
        """
        is_resumed = any(one.resumed_from for one in own)
        again = {(one.id, one.epoch) for one in own if is_resumed and not one.is_error}
        known = {alike(one) for one in own if not one.is_error}
        tasks = {one.id for one in own}

        def counts(one: TrialResult) -> bool:
            if one.is_error:
                return one.id in tasks and (one.id, one.epoch) not in again
            return alike(one) in known

        taken = {identity(one, run) for one in own}
        found = {identity(one, run): one for one in self.trials if counts(one)}
        return [one for key, one in found.items() if key not in taken]


def alike(one: TrialResult) -> tuple[str, ...]:
    """Equal for trials that differ by chance alone."""
    return one.id, one.conditions, one.scoring, one.subject


def identity(one: TrialResult, run: str) -> tuple[str, str, int]:
    """Identify a trial, whichever run has taken it over."""
    return one.resumed_from or run, one.id, one.epoch


def earlier_runs(directory: Path, run: str, subject: Mapping[str, Any], baseline: str) -> EarlierRuns:
    """Find the runs before `run` in a results folder. `baseline` is the first run of the baseline."""
    wanted = digest(subject)
    trials, looks, others = [], 0, set()
    for folder in run_folders(directory):
        # Ids of the same second are in no order, and a later run has no folder yet.
        if folder.name == run:
            continue
        try:
            # First, because most runs are of another subject, and their results are long.
            facts = read_json(folder / "run.json")
            if facts.get("baseline") != baseline:
                continue
            if (other := digest(facts["subject"])) != wanted:
                others |= {other} if was_compared(folder) else set()
                continue
            # Trials with answers of one record are alike beyond the subject.
            if not facts.get("answers"):
                trials += [one for one in ended_trials(folder) if not one.recorded]
            looks += was_compared(folder)
        # A damaged run has no trials that count.
        except UNREADABLE:
            continue
    return EarlierRuns(trials=trials, looks=looks, subjects=len(others))


def ended_trials(folder: Path) -> list[TrialResult]:
    """Read the ended trials of a stored run; none if it has so many errors that it decides nothing.

    Raises one of UNREADABLE.
    """
    results = (
        replace(checked_result(one), resumed_from=one.resumed_from or folder.name)
        for one in stored_results(folder)
    )
    ended = [one for one in last_reruns(results) if not one.is_interrupted]
    return [] if decide_nothing(sum(one.is_error for one in ended), len(ended)) else ended
