"""The recorded calls of the trials of a run: each is written as it is asked and as it ends.

Where the run takes answers from another run, a call gets the answer to an equal request of the same trial:
of several equal ones in the order of asking, and each once. Other requests are asked, or refused.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from pytest_super.errors import SuperError
from pytest_super.model.completion import Answer, Failure, ModelCallError, Usage, disk_errors
from pytest_super.model.protocols.canonical import Part, asked_lines, changed_line, place_of, with_ids
from pytest_super.model.settings import CallingTrial, ModelSettings
from pytest_super.store.answers import (
    FILE,
    FORMAT,
    AnswerStore,
    AnyPath,
    RecordedCall,
    TrialAnswers,
    read_answers,
)
from pytest_super.store.json_lines import append, to_line

# Trials whose record is in memory. That of another one is read again.
MOST_TRIALS = 32
# An equal request fails in the same way. Other failures are those of the provider or of a limit.
OF_THE_REQUEST = frozenset((Failure.CONTEXT, Failure.FILTERED, Failure.REFUSED))
MISS = (
    "{path} has no answer to call {number}: {difference}. "
    "--super-answers-miss=live asks the model, and a run without --super-answers records anew"
)
NO_SOURCE = (
    "the recorded run has no answers of this task in this epoch: "
    "--super-answers-miss=live asks the model, and a run without --super-answers records anew"
)
FORK_MISS = (
    "call {number} cannot get a recorded answer, with which the fork begins: {difference}. "
    "Run the whole task with this agent"
)


class Taken(NamedTuple):
    """A recorded call whose answer another one gets."""

    call: RecordedCall
    is_folded: bool
    """Whether their requests differ in what is hidden."""


@dataclass(kw_only=True)
class RecordedTrial:
    """The record of one trial, and what is left of the one that it takes answers from."""

    path: Path
    source: TrialAnswers | None = None
    is_fork: bool = False
    """Whether it begins with all of the answers that it takes, whatever the agent asks."""
    parts: set[str] = field(default_factory=set)
    """The ids of those that are written."""
    calls: int = 0
    left: dict[str, list[RecordedCall]] = field(default_factory=dict)
    """By the request: the recorded calls that none of ours has taken, in the order of asking."""
    has_taken: bool = False
    """Whether any of ours has."""
    under_way: int = 0
    """Calls that have not ended."""

    @classmethod
    def open(cls, path: Path, source: AnyPath | None, *, is_fork: bool = False) -> RecordedTrial:
        """Goes on with what an earlier gateway has written. Raises SuperError."""
        own = read_answers(path)
        answers = read_answers(source) if source else None
        if answers and any(call.taken is not None for call in answers.calls.values()):
            raise SuperError(f"{answers.path} has answers that come from another record")
        if answers:
            check_ids(answers)
        # A call that died with an earlier gateway is asked again, and gets the same answer.
        taken = {call.taken for call in own.calls.values() if call.end}
        left: dict[str, list[RecordedCall]] = {}
        for call in answers.calls.values() if answers else ():
            if call.number not in taken and ("answer" in call.end or call.failure in OF_THE_REQUEST):
                left.setdefault(call.asked, []).append(call)
        record = cls(path=path, source=answers, is_fork=is_fork, left=left, has_taken=any(taken))
        record.parts, record.calls = set(own.parts), len(own.calls)
        return record

    @property
    def is_in_past(self) -> bool:
        """Whether a fork has not come to the step from which it goes on."""
        return self.is_fork and (self.source is None or any(self.left.values()))

    def ask(self, parts: Sequence[Part], **facts: Any) -> tuple[int, Taken | None]:
        """Write a call. Returns its number, and the recorded call whose answer it gets. Raises OSError."""
        found = self._take(parts)
        self.calls += 1
        self.under_way += 1
        lines: list[dict[str, Any]] = [] if self.parts else [{"format": FORMAT}]
        before = ""
        for part in parts:
            if part.id not in self.parts:
                line = {"part": part.id, "after": before, "name": part.name, "value": part.value}
                more = {"item": part.item, "hidden": part.hidden}
                lines.append({**line, **{name: value for name, value in more.items() if value}})
                self.parts.add(part.id)
            before = part.id
        if found:
            facts |= {"taken": found.call.number, "folded": found.is_folded}
        elif self.source is not None and not self.is_fork:
            facts["differs"] = self.difference(parts)
        self._write([*lines, {"call": self.calls, "asked": parts[-1].id, **facts}])
        return self.calls, found

    def _take(self, parts: Sequence[Part]) -> Taken | None:
        """The first call that is left of this request; in a fork's past the next one, whatever is asked."""
        if self.source is None:
            return None
        found = None
        if equal := self.left.get(parts[-1].id):
            known = [self.source.parts[part.id] for part in parts]
            is_folded = any(was.hidden != now.hidden for was, now in zip(known, parts, strict=True))
            if not (is_folded and any(text in self.source.used for was in known for text in was.hidden)):
                found = Taken(equal[0], is_folded)
        if found is None and self.is_in_past:
            following = min(chain(*self.left.values()), key=attrgetter("number"))
            # An answer of another protocol says nothing to it.
            if self.source.asked(following.number)["protocol"] == parts[0].value:
                found = Taken(following, is_folded=True)
        if found is not None:
            self.left[found.call.asked].remove(found.call)
            self.has_taken = True
        return found

    def add(self, number: int, **facts: Any) -> None:
        """Write what became of a call. Raises OSError."""
        self.under_way -= "answer" in facts or "error" in facts
        self._write([{"call": number, **facts}])

    def _write(self, lines: list[dict[str, Any]]) -> None:
        append(self.path, "".join(map(to_line, lines)), is_synced=False)

    def miss(self, parts: Sequence[Part], number: int) -> ModelCallError:
        """Why a call that is not recorded ends its trial."""
        if self.source is None:
            return ModelCallError(Failure.TRANSIENT, NO_SOURCE, is_final=True)
        words = FORK_MISS if self.is_fork else MISS
        text = words.format(number=number, path=self.source.path, difference=self.difference(parts))
        return ModelCallError(Failure.TRANSIENT, text, is_final=True)

    def difference(self, parts: Sequence[Part]) -> str:
        """The first part that the other record does not have, with its first line that differs."""
        assert self.source is not None
        before = ""
        for part in parts:
            if part.id not in self.source.parts:
                there = {one.name: one for one in self.source.parts.values() if one.after == before}
                if part.name not in there and (gone := there.keys() - {each.name for each in parts}):
                    was = there[min(gone)]
                    return f"{place_of(was)}: {changed_line(asked_lines(was), ())}"
                was_lines = asked_lines(there[part.name]) if part.name in there else ()
                return f"{place_of(part)}: {changed_line(was_lines, asked_lines(part))}"
            before = part.id
        return "no equal request is left"


class RecordedTrials:
    """The records of a run's trials. They belong to one event loop."""

    def __init__(self, folder: Path, source: AnswerStore | None, *, is_fork: bool = False) -> None:
        """`folder` is that of the trials; a fork's `source` has one trial, with which all epochs begin."""
        self.folder = folder
        self._source = source
        self._is_fork = is_fork
        self._trials: OrderedDict[str, RecordedTrial] = OrderedDict()

    def of(self, name: str, task: str, epoch: int) -> RecordedTrial:
        """Open the record of the trial with this name, one of a task in an epoch. Raises SuperError."""
        if name not in self._trials:
            path = self.folder / name / FILE
            path.parent.mkdir(parents=True, exist_ok=True)
            source = self._source.file_of(task, 1 if self._is_fork else epoch) if self._source else None
            self._trials[name] = RecordedTrial.open(path, source, is_fork=self._is_fork)
        self._trials.move_to_end(name)
        if len(self._trials) > MOST_TRIALS:
            # A call under way is in memory alone: read again, its answer would be given once more.
            idle = [each for each, trial in self._trials.items() if not trial.under_way and each != name]
            for each in idle[: len(self._trials) - MOST_TRIALS]:
                del self._trials[each]
        return self._trials[name]

    @contextmanager
    def recording(self, trial: CallingTrial) -> Iterator[RecordedTrial]:
        """The trial's record. Raises ModelCallError if it cannot be read, or in the block not be written."""
        with disk_errors(self.folder):
            try:
                record = self.of(trial.name, trial.task, trial.epoch)
            except SuperError as error:
                text = f"{error}; --super-answers=none does without a record"
                raise ModelCallError(Failure.TRANSIENT, text, is_final=True) from None
            yield record


def recorded_trials(settings: ModelSettings) -> RecordedTrials | None:
    """Open the records of a run; None if nothing is recorded."""
    if settings.record is None:
        return None
    source = AnswerStore(Path(settings.answers)) if settings.answers else None
    return RecordedTrials(Path(settings.record), source, is_fork=settings.is_fork)


def check_ids(answers: TrialAnswers) -> None:
    """Raises SuperError for a part whose id is not its own."""
    # Each part is in a request whose last part is none of another request.
    for last in answers.parts.keys() - {part.after for part in answers.parts.values()}:
        request = answers.request(last)
        found = with_ids((part.name, part.value, part.item) for part in request.values())
        for stated, part in zip(request, found, strict=True):
            if stated != part.id:
                raise SuperError(f"{answers.path} is damaged: the part {stated} is not what its id says")


def answer_of(taken: Taken) -> Answer:
    """The recorded answer. Raises ModelCallError if the recorded call has failed."""
    end = taken.call.end
    if error := end.get("error"):
        raise ModelCallError(Failure(error["code"]), error["message"])
    usage = Usage.from_data(end)
    return Answer(
        body=end["answer"],
        is_chat=False,
        usage=replace(usage, recorded=1, recorded_usd=usage.cost_usd or 0.0, provided=0),
        is_counted=end["is_counted"],
        model=end["model"],
        fingerprint=end["fingerprint"],
        # For a client that left, the time has passed again.
        seconds=0.0 if taken.call.left_after is not None else end["seconds"],
    )
