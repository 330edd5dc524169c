"""The record of a folder of generated tasks: append-only files, so that no run asks a paid question twice.

repositories.jsonl    the report: a line for the outcome of each repository, in each run that processed it
answers.jsonl         each answer of the model, written before it is used
calls.jsonl           the tokens and cost of each call of the model, written by the gateway
"""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

from pytest_super.authoring.generate.refusal import PASSING
from pytest_super.digests import file_digest
from pytest_super.errors import SuperError
from pytest_super.store.json_lines import read_lines, to_line

REPORT, ANSWERS, CALLS = "repositories.jsonl", "answers.jsonl", "calls.jsonl"
KEPT, DROPPED = "kept", "dropped"


@dataclass(kw_only=True)
class RepositoryOutcome:
    """The outcome for one repository, filled in step by step; plain JSON values only."""

    named: str
    """As the user wrote it."""
    id: str
    outcome: str = DROPPED
    """KEPT or DROPPED."""
    reason: str = ""
    """Why it was dropped: a key of REASONS."""
    detail: str = ""
    """The facts behind the reason."""
    repository: dict[str, str] = field(default_factory=dict)
    """The fields by which the task file pins it."""
    questions: dict[str, Any] = field(default_factory=dict)
    """The model's answers to the questions, with its reasons."""
    task: dict[str, Any] = field(default_factory=dict)
    """The fields of the task file."""
    sha256: str = ""
    """Digest of the task file."""
    model: str = ""
    key: str = ""
    """Digest of everything that determines the outcome."""
    ended: str = ""
    """ISO 8601 with offset."""

    @property
    def is_settled(self) -> bool:
        return self.reason not in PASSING

    def drop(self, reason: str, detail: str) -> None:
        self.outcome, self.reason, self.detail = DROPPED, reason, detail


class GenerationRecord:
    """The record of one folder. One process at a time opens it, and its threads add to it."""

    def __init__(self, folder: Path) -> None:
        """Raises SuperError when the record cannot be used, or another process uses it."""
        self.folder = folder
        self._writing = threading.Lock()
        with ExitStack() as opened:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                self._report = opened.enter_context((folder / REPORT).open("a", encoding="utf-8"))
                fcntl.flock(self._report, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._answers = opened.enter_context((folder / ANSWERS).open("a", encoding="utf-8"))
                # With the lock: without it, half a line could be one that another process is writing.
                end_last_line(self._report, folder / REPORT)
                end_last_line(self._answers, folder / ANSWERS)
                self._read()
            except BlockingIOError:
                raise SuperError(f"another `pytest-super generate` runs into {folder}") from None
            except (OSError, UnicodeDecodeError) as error:
                raise SuperError(f"{folder} cannot be used: {error}") from None
            except (TypeError, KeyError, AttributeError):
                raise SuperError(f"{folder}: {REPORT} or {ANSWERS} has a line that is not ours") from None
            # At the end, so that any error above closes the files, which releases the lock.
            self.close = opened.pop_all().close

    def _read(self) -> None:
        outcomes = [RepositoryOutcome(**line) for line in read_lines(self.folder / REPORT)]
        lines = read_lines(self.folder / ANSWERS)
        self.answers = {line["key"]: (line["text"], line["finish_reason"]) for line in lines}
        """The text of each answer and why it ended, by key of the question."""
        self.earlier_answers = len(self.answers)
        self.settled = {each.key: each for each in outcomes if each.key and each.is_settled}
        self.ids = {each.named: each.id for each in outcomes}
        self.pins = {each.named: each.repository for each in outcomes if each.repository}
        self._written = {each.sha256 for each in outcomes if each.sha256}

    def add(self, outcome: RepositoryOutcome) -> None:
        self._append(self._report, asdict(outcome))

    def add_answer(self, key: str, task: str, text: str, finish_reason: str) -> None:
        line = {"key": key, "id": task, "text": text, "finish_reason": finish_reason}
        self._append(self._answers, line)
        self.answers[key] = text, finish_reason

    def _append(self, file: TextIO, data: dict[str, Any]) -> None:
        """Write a line, which survives a crash of the machine: answers are paid. Raises SuperError."""
        with self._writing:
            try:
                file.write(to_line(data))
                file.flush()
                os.fsync(file.fileno())
            except OSError as error:
                raise SuperError(f"{file.name} cannot be written: {error.strerror}") from None

    def is_ours(self, path: Path) -> bool:
        """Whether it can be overwritten: it does not exist, or a run into this folder wrote its content."""
        try:
            return file_digest(path) in self._written
        except FileNotFoundError:
            return True

    def cost(self) -> float | None:
        """US dollars of all calls for this folder; None when no price is known."""
        costs = [line.get("cost_usd") for line in read_lines(self.folder / CALLS)]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known else None


def end_last_line(file: TextIO, path: Path) -> None:
    """A process that died can have left half a line, to which nothing must be appended."""
    if path.read_bytes()[-1:] not in (b"", b"\n"):
        file.write("\n")
