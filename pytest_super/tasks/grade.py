"""How a task is graded by a command: what is collected, what is run on it, and what it has to yield."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isnan
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PrivateAttr, model_validator

from pytest_super.tasks.fields import FieldModel, Regex, RelativePath, Seconds, Text
from pytest_super.tasks.sandbox_spec import SandboxSpec

EVERYTHING = "all"
"""The value of `collect` for the whole working directory."""
FRESH, SAME = "fresh", "same"
"""The values of `where`."""
SOURCES = ("exit", "junit", "json", "regex", "number")

NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def check_sandbox_path(path: str) -> str:
    pure = PurePosixPath(path)
    if ".." in pure.parts or not pure.name:
        raise ValueError(f"must be a path of a file or a folder without `..`, not {path!r}")
    return str(pure)


def check_pointer(text: str) -> str:
    if text and not text.startswith("/"):
        raise ValueError("is not a JSON pointer, such as /metrics/auc")
    return text


def check_collect(value: object) -> object:
    if value == EVERYTHING:
        return value
    # Here and not by the type of the items: pydantic's errors about a union name its parts.
    if not isinstance(value, list) or not value or not all(isinstance(path, str) for path in value):
        raise ValueError(f"should be a list of paths, or `{EVERYTHING}`")
    return [check_sandbox_path(path) for path in value]


def check_interval(bounds: list[float]) -> list[float]:
    if not bounds[0] <= bounds[1]:
        raise ValueError("should have its lower bound first, and no NaN")
    return bounds


def check_expected(value: Any) -> Any:
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, float) and isnan(one):
            raise ValueError("contains NaN, which equals nothing")
        todo += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return value


SandboxPath = Annotated[str, AfterValidator(check_sandbox_path)]
"""Absolute, or relative to the folder of the provided repository, or without one to the working directory."""


class JsonValue(FieldModel):
    """A value in a JSON file."""

    file: SandboxPath
    pointer: Annotated[str, AfterValidator(check_pointer)] = ""
    """Where it is (RFC 6901); by default the whole content."""


class RegexValue(FieldModel):
    """What the last match of a pattern contains, or the last one with each name."""

    pattern: Regex
    """With groups `name` and `value` it yields several values."""
    block: Regex | None = None
    """Its last match before a value, such as `Table 2`, begins the value's name."""
    group: Annotated[int, Field(ge=0)] = 1
    file: SandboxPath | None = None
    """By default the pattern is searched in what the command prints."""

    @property
    def has_names(self) -> bool:
        return "name" in re.compile(self.pattern).groupindex

    @model_validator(mode="after")
    def check_group(self) -> Self:
        compiled = re.compile(self.pattern)
        if self.group > compiled.groups:
            raise ValueError(f"has no group {self.group}: the pattern has {compiled.groups}")
        if self.has_names and ("value" not in compiled.groupindex or "group" in self.model_fields_set):
            raise ValueError("needs a group `value`, and no `group`, with the group `name`")
        if self.block is not None and not self.has_names:
            raise ValueError("needs the groups `name` and `value` in its pattern with `block`")
        return self


class Check(FieldModel):
    """Where one or several values come from, and what they should be.

    Without `expected` and `interval` the value itself is the score, from 0 to 1.
    """

    # `json` is a method of pydantic's models.
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    name: Text | None = None
    """What it is called in reports; by default its source."""
    exit: Annotated[int, Field(ge=0, le=255)] | None = None
    """The exit code that the command should have."""
    junit: SandboxPath | None = None
    """A JUnit XML file; each testcase is a value, which is right if the test passed."""
    json_: Annotated[JsonValue | None, Field(alias="json")] = None
    regex: RegexValue | None = None
    number: SandboxPath | None = None
    """A file that contains nothing but a number."""
    expected: Annotated[Any, AfterValidator(check_expected)] = None
    rel: NotNegative = 0.0
    """The largest relative difference between a right number and the expected one."""
    abs: NotNegative = 0.0
    """The largest absolute one; the larger of the two counts."""
    ignore_case: bool = False
    """Whether upper and lower case of an expected text are equal. Blanks around a text never count."""
    interval: (
        Annotated[list[float], Field(min_length=2, max_length=2), AfterValidator(check_interval)] | None
    ) = None
    """The bounds of a right number, inclusive."""

    @property
    def source(self) -> str:
        return next(name for name in SOURCES if self.stated(name))

    @property
    def key(self) -> str:
        """What a variation and the paper's values call it."""
        return self.name or self.source

    def stated(self, name: str) -> bool:
        return getattr(self, "json_" if name == "json" else name) is not None

    @property
    def file(self) -> str | None:
        """The file that the command is to write, if the values come from one."""
        holder = self.json_ or self.regex
        return holder.file if holder else self.junit or self.number

    @property
    def has_expected(self) -> bool:
        return "expected" in self.model_fields_set

    @property
    def has_value(self) -> bool:
        """Whether it has a value that is compared, which neither an exit code nor a test is."""
        return self.source not in ("exit", "junit")

    @property
    def names_values(self) -> bool:
        """Whether `expected` has the names of the values that a pattern yields."""
        return self.regex is not None and self.regex.has_names and self.name is None

    def each(self) -> list[Check]:
        """A check for each of the named values."""
        if not self.names_values:
            return [self]
        return [
            self.model_copy(update={"name": name, "expected": one}) for name, one in self.expected.items()
        ]

    def allows(self, value: Any) -> bool:
        """Whether a value is the expected one, for a number within the tolerance."""
        if isinstance(value, int | float) and isinstance(self.expected, int | float):
            return abs(value - self.expected) <= max(self.rel * abs(self.expected), self.abs)
        return bool(value == self.expected)

    def expecting(self, value: Any) -> Check:
        """The same check of another value."""
        fields = self.model_dump(
            include={"name", "json_", "regex", "number", "rel", "abs", "ignore_case"}, exclude_unset=True
        )
        return Check(**fields, expected=value)

    @model_validator(mode="after")
    def check_source(self) -> Self:
        if sum(map(self.stated, SOURCES)) != 1:
            raise ValueError(f"needs exactly one of {', '.join(SOURCES)}")
        return self

    @model_validator(mode="after")
    def check_names(self) -> Self:
        if self.names_values:
            values = self.expected.values() if isinstance(self.expected, dict) else ()
            if not values or not all(type(one) in (int, float, str) for one in values):
                raise ValueError(
                    "needs the values of the pattern's names: `expected: {GG-F: 0.5, GN-F: 0.7}`"
                )
        elif self.regex and self.regex.has_names and isinstance(self.expected, dict | list):
            raise ValueError("takes no `name` where `expected` has the values of the pattern's names")
        return self

    @model_validator(mode="after")
    def check_bounds(self) -> Self:
        given = {"expected", "interval", "rel", "abs", "ignore_case"} & self.model_fields_set
        if given and not self.has_value:
            raise ValueError(f"with {self.source} takes no {' and no '.join(sorted(given))}")
        if {"expected", "interval"} <= given:
            raise ValueError("takes one of expected, interval")
        if given & {"rel", "abs", "ignore_case"} and "expected" not in given:
            raise ValueError("needs `expected` with rel, abs and ignore_case")
        return self


class GradedCommand(FieldModel):
    """A command whose values decide whether a task is solved."""

    command: Text
    """A line for `sh`. It starts in the folder of the provided repository, or in the working directory."""
    result: Annotated[list[Check], Field(min_length=1)]
    timeout: Seconds = 600.0
    """How long the command can run."""
    files: dict[SandboxPath, RelativePath] = {}
    """Files and folders that only the grader gets: where they are put, and where they are, relative to the
    task file."""

    @property
    def checks(self) -> list[Check]:
        """List the checks of `result`, each of one value or of an unnamed list or mapping."""
        return [one for check in self.result for one in check.each()]

    @property
    def label(self) -> str:
        """What the names of its values begin with, where there are several commands."""
        return ""


Aggregation = Literal["all", "mean", "fraction"]
"""What the metric `graded` is: 1 if all values are right, else 0; the mean over the commands of the portion
of right values; or the portion of right values."""


class Grade(GradedCommand):
    """The grader of a task: a command that is run on what the agent leaves behind.

    It runs in a second sandbox, which starts as the agent's own did, so that nothing else of the agent's
    sandbox can help it.
    """

    collect: (
        Annotated[
            Literal["all"] | list[str],
            BeforeValidator(check_collect, json_schema_input_type=Literal["all"] | list[str]),
        ]
        | None
    ) = None
    """The files and folders that come out of the agent's sandbox; required unless `where` is `same`."""
    where: Literal["fresh", "same"] = "fresh"
    """`same` is the agent's own sandbox, with the processes that it left, which can deceive the grader."""
    sandbox: SandboxSpec | None = None
    """Its fields override those of the task."""
    aggregate: Aggregation = "fraction"
    then: Grade | None = None
    """A command that is run on what the first one leaves behind, in a sandbox in which no code of the agent
    has run. It is the place of what compares and computes; its `aggregate` is the first one's."""

    _experiments: tuple[GradedCommand, ...] = PrivateAttr(default=())

    @property
    def commands(self) -> tuple[GradedCommand, ...]:
        """Its own command, or those of the experiments that a task of the set functions has instead."""
        return self._experiments or (self,)

    def steps(self) -> Iterator[tuple[tuple[str, ...], Grade]]:
        """The grader and what comes `then`, each with its place in the first one."""
        yield (), self
        if self.then is not None:
            yield from ((("then", *place), one) for place, one in self.then.steps())

    @model_validator(mode="after")
    def check_where(self) -> Self:
        if self.where == FRESH and self.collect is None:
            raise ValueError("needs `collect`: what comes out of the agent's sandbox")
        if self.where == SAME and (self.collect is not None or self.sandbox is not None):
            raise ValueError("takes neither `collect` nor `sandbox` where it is graded in the `same` sandbox")
        if self.then is not None and SAME in (self.where, self.then.where):
            raise ValueError("takes `then` only where both have a `fresh` sandbox")
        if self.then is not None and self.then.collect == EVERYTHING:
            raise ValueError("needs the paths of files in `then.collect`: in `all` is the agent's code")
        return self
