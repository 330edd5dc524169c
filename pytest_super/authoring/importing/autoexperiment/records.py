"""The published records of functions and experiments, and the report on what an import uses of them."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from pytest_super.authoring.rows import Row, content_of, read_rows
from pytest_super.tasks.paper import FUNCTION_ID
from pytest_super.tasks.reasons import reason
from pytest_super.words import counted

Fields = dict[str, Any]
TABLE, OWN = "mlrc_exps.csv", "experiments.jsonl"
"""The experiments of all papers, next to the folders of the papers; those of one paper, in its folder."""


def is_missing(value: Any) -> bool:
    # An empty cell of a table is NaN, which differs from itself.
    return value is None or value != value or not str(value).strip()


def as_id(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value).strip() if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not text:
        raise ValueError(f"has {value!r}, which is not an id")
    return text


def function_id(text: str) -> str:
    """An id that can be a part of the ids of items."""
    if not re.fullmatch(FUNCTION_ID, text) or len(text) > 50:
        raise ValueError(f"has {text!r}, which is not an id of letters, digits, `.` and `-`")
    return text


def ids_of(value: Any) -> tuple[str, ...]:
    """A list of ids, or a text with commas between them."""
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(dict.fromkeys(map(as_id, parts if isinstance(parts, list) else [parts])))


def line_number(value: Any) -> int | None:
    """The first snapshot has line numbers as text."""
    text = str(value).strip()
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,8}", text) else None


Id = Annotated[str, BeforeValidator(as_id)]
Ids = Annotated[tuple[str, ...], BeforeValidator(ids_of)]
Line = Annotated[int | None, BeforeValidator(line_number)]
Stated = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class PublishedRecord(BaseModel):
    """A line of the published files, where null, an empty text and NaN mean that a value is missing."""

    model_config = ConfigDict(strict=True, frozen=True)

    description: str = ""

    @model_validator(mode="before")
    @classmethod
    def without_missing(cls, fields: Fields) -> Fields:
        return {name: value for name, value in fields.items() if not is_missing(value)}


class FunctionRecord(PublishedRecord):
    """A function that can be masked. Its lines are those of another state of the code, or None."""

    id: Annotated[Id, AfterValidator(function_id)] = Field(alias="func_id")
    file: Stated
    name: Stated
    """Without its class."""
    header_line: Line = None
    line_end: Line = None
    passage: str = Field("", alias="relevant_paper")
    experiments: Ids = Field((), alias="exp_dependencies")
    """The ids of the experiments that need it. Only the later snapshot has them."""

    @property
    def label(self) -> str:
        return f"function {self.id}"


class ExperimentRecord(PublishedRecord):
    """A command and what it yielded when the authors ran it."""

    id: Id = Field(alias="exp_id")
    command: Stated = Field(alias="solution")
    result: Any
    functions: Ids = Field((), alias="func_dependencies")
    """The ids of the functions that it needs. Only the earlier snapshot has them."""

    @property
    def label(self) -> str:
        return f"experiment {self.id}"


Record = TypeVar("Record", FunctionRecord, ExperimentRecord)


@dataclass(frozen=True)
class Records(Generic[Record]):
    """The records of a file by id, and the ids of all its lines, also of those that are no record."""

    by_id: dict[str, Record]
    ids: frozenset[str]


@dataclass
class PaperReport:
    """The remarks on one paper, in the order of its records."""

    paper: str
    used: dict[str, int] = field(default_factory=dict)
    """How many functions and experiments its task has; empty if it has no task."""
    recorded: dict[str, int] = field(default_factory=dict)
    """How many its files record, also in lines that cannot be used."""
    guessed: int = 0
    """How many values are found by a guessed pattern."""
    left_out: int = 0
    remarks: dict[str, list[str]] = field(default_factory=dict)
    """The places of each remark."""

    def note(self, place: str, text: str) -> None:
        self.remarks.setdefault(text, []).append(place)

    def leave_out(self, place: str, why: str) -> None:
        self.left_out += 1
        self.note(place, f"left out: {why}")

    def refuse(self, why: str) -> None:
        """The paper has no task, for these reasons, one a line."""
        self.left_out += 1
        self.used = {}
        for line in why.splitlines():
            self.note("no task", line)


def report_lines(report: PaperReport) -> Iterator[str]:
    figures = [
        f"{report.used.get(what, 0)} of {counted(count, what)}" for what, count in report.recorded.items()
    ]
    yield f"{report.paper}: {', '.join(figures) or 'nothing'} imported"
    yield from (f"  {joined(places)}: {remark}" for remark, places in report.remarks.items())


def joined(places: Sequence[str]) -> str:
    """`experiments 1, 2` for `experiment 1` and `experiment 2`."""
    places = list(dict.fromkeys(places))
    what = places[0].partition(" ")[0]
    if len(places) == 1 or not all(place.startswith(f"{what} ") for place in places):
        return ", ".join(places)
    return f"{what}s {', '.join(place.partition(' ')[2] for place in places)}"


def read_functions(folder: Path, report: PaperReport) -> Records[FunctionRecord]:
    """Raises SuperError if the file cannot be read."""
    rows = read_rows(folder / "functions.jsonl", "functions.jsonl")
    return made_records(rows, "functions.jsonl", "function", FunctionRecord, report)


def read_experiments(folder: Path, report: PaperReport) -> Records[ExperimentRecord]:
    """The published tasks' experiments, else those of the paper's own, older file. Raises SuperError."""
    table = [one for one in read_table(folder.parent / TABLE) if one.fields.get("paper_id") == folder.name]
    rows, shown = (table, TABLE) if table else (read_rows(folder / OWN, OWN), OWN)
    return made_records(rows, shown, "experiment", ExperimentRecord, report)


def read_table(path: Path) -> list[Row]:
    """The rows of a CSV file; none without the file. Raises SuperError if it cannot be read."""
    data = content_of(path, path.name) if path.exists() else b""
    table = csv.DictReader(io.StringIO(data.decode("utf-8", "replace"), newline=""))
    return [Row(table.line_num, fields) for fields in table]


def made_records(
    rows: Sequence[Row], shown: str, what: str, model: type[Record], report: PaperReport
) -> Records[Record]:
    """The records of the rows; `shown` is the name of their file."""
    report.recorded[what] = len(rows)
    made: dict[str, Record] = {}
    lines: dict[str, int] = {}
    for row in rows:
        one_id = ""
        with suppress(ValueError):
            one_id = as_id(row.fields.get(str(model.model_fields["id"].alias)))
        try:
            if one_id in lines:
                raise ValueError(f"line {lines[one_id]} has the same id, {one_id}")
            if one_id:
                lines[one_id] = row.number
            record = model.model_validate(row.fields)
            made[record.id] = record
        except ValidationError as error:
            wrong = [f"`{detail['loc'][0]}` {reason(detail)}" for detail in error.errors(include_url=False)]
            report.leave_out(f"{shown}:{row.number}", "; ".join(wrong))
        except ValueError as error:
            report.leave_out(f"{shown}:{row.number}", str(error))
    return Records(made, frozenset(lines))
