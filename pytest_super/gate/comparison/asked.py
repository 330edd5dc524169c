"""Where the trials of two runs first asked their model something else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from pytest_super.model.failures import RETRIED
from pytest_super.model.request_difference import RequestDifference, first_difference, nearest
from pytest_super.store.answers import FILE, AnswerStore, RecordedCall, TrialAnswers, read_answers
from pytest_super.store.results import TrialResult, epoch_name, folder_name

# Requests that a trial makes more or less often than its counterpart.
MORE, FEWER = "one more call", "one call less"


class StoredRun(NamedTuple):
    folder: Path
    results: Sequence[TrialResult]
    """Of each trial the last rerun."""


@dataclass(frozen=True, kw_only=True)
class AskedTrial:
    """A trial next to the one of the same task and epoch in another run."""

    id: str
    """The task."""
    epoch: int
    call: int = 0
    """The number of its first call that the other one did not make; 0 if all are equal."""
    difference: RequestDifference | None = None
    at: str = ""
    """When it was made."""

    @property
    def name(self) -> str:
        return epoch_name(self.id, self.epoch)

    @property
    def is_equal(self) -> bool:
        return self.difference is None


def asked_trials(before: AnswerStore, now: StoredRun) -> Iterator[AskedTrial]:
    """Yield the trials of a run whose answers both have. Raises SuperError."""
    for one in now.results:
        earlier, file = before.file_of(one.id, one.epoch), now.folder / folder_name(one) / FILE
        if earlier is not None and file.exists():
            yield asked_trial(one, read_answers(earlier), read_answers(file))


def asked_trial(trial: TrialResult, before: TrialAnswers, now: TrialAnswers) -> AskedTrial:
    known = AskedTrial(id=trial.id, epoch=trial.epoch)
    left = Counter(call.asked for call in lasting(before))
    for call in lasting(now):
        if not left[call.asked]:
            found = difference_at(before, now, call.number)
            return replace(known, call=call.number, difference=found, at=call.started)
        left[call.asked] -= 1
    if left.total():
        return replace(known, call=len(now.calls) + 1, difference=RequestDifference(place=FEWER))
    return known


def lasting(trial: TrialAnswers) -> Iterator[RecordedCall]:
    """The calls, without those that the provider failed and that were asked again."""
    calls = list(trial.calls.values())
    for place, call in enumerate(calls):
        if call.failure not in RETRIED or all(later.asked != call.asked for later in calls[place + 1 :]):
            yield call


def difference_at(before: TrialAnswers, now: TrialAnswers, number: int) -> RequestDifference:
    request = now.request(now.calls[number].asked)
    call = nearest(before, request, number, before.calls.values())
    found = first_difference(before.request(call.asked) if call else {}, request)
    return found or RequestDifference(place=MORE)
