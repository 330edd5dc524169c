"""The model's answers of a trial, with what was asked: `answers.jsonl` (docs/reference/answers.md).

A request is stored as its parts, each once, with the part before it; its last part names the request.
"""

import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_super.errors import SuperError
from pytest_super.json_values import texts
from pytest_super.reading import open_regular
from pytest_super.store.json_lines import UNREADABLE, damage
from pytest_super.store.results import TRIAL_FOLDER

AnyPath = Path | zipfile.Path
"""In a folder, or in an archive."""
# What reading a damaged archive can raise.
BROKEN = (OSError, zipfile.BadZipFile, zlib.error, EOFError)
FORMAT = 1
FILE = "answers.jsonl"
# What is known of each answer.
FACTS = (
    *("prompt_tokens", "completion_tokens", "cost_usd", "is_counted"),
    *("model", "fingerprint", "seconds"),
)
# A trial of a thousand calls has about 10 MB.
MOST_MIB = 256


@dataclass(frozen=True, slots=True)
class AskedPart:
    """A field of a request, or an item of its conversation."""

    after: str
    """The id of the part before it; "" for the first one."""
    name: str
    """The field."""
    value: Any
    """As it was asked."""
    item: int = 0
    """Its number in the conversation, from 1; 0 for another field."""
    hidden: Sequence[str] = ()
    """Texts in it that its id does not depend on."""


@dataclass(slots=True)
class RecordedCall:
    """What became of a call."""

    number: int
    """From 1, in the order of asking."""
    asked: str
    """The id of the last part of its request."""
    started: str = ""
    taken: int | None = None
    """The number of the recorded call whose answer it got; None if it was put to the model."""
    differs: str = ""
    """Where it differs first from what the other record has, if it was put to the model for that."""
    left_after: float | None = None
    """After how many seconds the client left; None if it waited until the end."""
    end: dict[str, Any] = field(default_factory=dict)
    """The `answer` with its facts, or the `error`; empty if the process died before."""

    @property
    def failure(self) -> str:
        """The code of its error; "" without one."""
        return str((self.end.get("error") or {}).get("code", ""))


@dataclass(kw_only=True)
class TrialAnswers:
    """The calls of one trial, by number, and the parts of their requests, by id."""

    path: AnyPath
    calls: dict[int, RecordedCall] = field(default_factory=dict)
    parts: dict[str, AskedPart] = field(default_factory=dict)

    def asked(self, number: int) -> dict[str, Any]:
        """The request of a call, without what does not shape its answer."""
        fields: dict[str, Any] = {}
        for part in self.request(self.calls[number].asked).values():
            if part.item:
                fields.setdefault(part.name, []).append(part.value)
            else:
                fields[part.name] = part.value
        return fields

    @cached_property
    def used(self) -> set[str]:
        """The hidden texts that an answer has."""
        hidden = {text for part in self.parts.values() for text in part.hidden}
        said = "\n".join(text for call in self.calls.values() for text in texts(call.end.get("answer")))
        return {text for text in hidden if text in said}

    def request(self, asked: str) -> dict[str, AskedPart]:
        """The parts of a request by their ids, in their order."""
        found: list[tuple[str, AskedPart]] = []
        while asked:
            part = self.parts[asked]
            found.append((asked, part))
            asked = part.after
        return dict(reversed(found))


class AnswerStore:
    """The answers of the trials of a run: in its folder, or in an archive beside a baseline."""

    def __init__(self, path: Path) -> None:
        """Raises SuperError for a file that is not an archive."""
        self.path = path
        try:
            self._root: AnyPath = zipfile.Path(path) if path.is_file() else path
        except BROKEN as error:
            raise SuperError(f"{path} is not an archive of answers: {error}") from None

    def facts(self) -> dict[str, Any]:
        """What run.json says. Raises SuperError."""
        try:
            return {**json.loads((self._root / "run.json").read_text(encoding="utf-8"))}
        except (*UNREADABLE, *BROKEN) as error:
            raise SuperError(f"{self.path}: run.json cannot be read: {damage(error)}") from None

    def files(self) -> Iterator[AnyPath]:
        """The answers of all trials."""
        trials = self._root / "trials"
        for task in trials.iterdir() if trials.is_dir() else ():
            files = (trial / FILE for trial in task.iterdir()) if task.is_dir() else ()
            yield from (file for file in files if file.is_file())

    def file_of(self, task: str, epoch: int) -> AnyPath | None:
        """The answers of a trial, of its last rerun; None if there are none."""
        folder = self._root / "trials" / task
        if not folder.is_dir():
            return None
        names = [each.name for each in folder.iterdir() if TRIAL_FOLDER.fullmatch(each.name)]
        reruns = [
            int(rerun) for number, _, rerun in (name.partition(".") for name in names) if int(number) == epoch
        ]
        file = folder / f"{epoch}.{max(reruns)}" / FILE if reruns else None
        return file if file is not None and file.is_file() else None


def read_answers(path: AnyPath) -> TrialAnswers:
    """The answers of a trial; none if the file does not exist. Raises SuperError."""
    answers = TrialAnswers(path=path)
    try:
        size = path.stat().st_size if isinstance(path, Path) else path.root.getinfo(path.at).file_size
        if size > MOST_MIB * 2**20:
            raise SuperError(f"{path} is larger than {MOST_MIB} MiB: it is not a record of a trial's answers")
        for number, line in complete_lines(path):
            try:
                add_line(answers, line)
            except UNREADABLE as error:
                raise SuperError(f"{path}:{number}: not a line of a record: {damage(error)}") from None
    except FileNotFoundError:
        pass
    except BROKEN as error:
        raise SuperError(f"{path} cannot be read: {error}") from None
    return answers


def complete_lines(path: AnyPath) -> Iterator[tuple[int, Any]]:
    """The JSON lines with their numbers. A process that died can have cut one."""
    with open_regular(path) if isinstance(path, Path) else path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield number, json.loads(line.decode("utf-8", "replace"))
            except (ValueError, RecursionError):
                continue


def add_line(answers: TrialAnswers, line: dict[str, Any]) -> None:
    """Raises one of UNREADABLE, and SuperError for a newer format."""
    if "format" in line:
        if line["format"] > FORMAT:
            raise SuperError(
                f"{answers.path} has format {line['format']}, and this pytest-super reads up to {FORMAT}: "
                "use the version that wrote it, or a newer one"
            )
    elif "part" in line:
        after, name, value = str(line["after"]), str(line["name"]), line["value"]
        # Known before, so that no chain of parts is a circle.
        if after and after not in answers.parts:
            raise KeyError(after)
        part = AskedPart(after, name, value, int(line.get("item", 0)), list(map(str, line.get("hidden", ()))))
        answers.parts.setdefault(str(line["part"]), part)
    elif "asked" in line:
        number, asked = int(line["call"]), str(line["asked"])
        if asked not in answers.parts:
            raise KeyError(asked)
        started, differs = (str(line.get(name, "")) for name in ("started", "differs"))
        answers.calls[number] = RecordedCall(number, asked, started, line.get("taken"), differs)
    elif "left_after" in line:
        answers.calls[line["call"]].left_after = float(line["left_after"])
    else:
        if "answer" in line:
            dict(line["answer"]), *(line[name] for name in FACTS)
        answers.calls[line["call"]].end = {name: value for name, value in line.items() if name != "call"}
