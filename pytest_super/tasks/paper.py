"""A paper of the set functions: its text, functions that can be masked, experiments that need them."""

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, model_validator

from pytest_super.errors import SuperError
from pytest_super.functions.source import SEPARATOR, by_file
from pytest_super.tasks.fields import SHA256, FieldModel, Regex, RelativePath, Text
from pytest_super.tasks.grade import GradedCommand, check_expected
from pytest_super.words import did_you_mean

PAPER_SUFFIXES = (".txt", ".md", ".pdf")
# `verify` gives the commands other seeds in it: `python train.py --seed ${SUPER_SEED:-0}`.
SEED_VARIABLE = "SUPER_SEED"
GOLD_RUN, PAPER = "gold-run", "paper"
"""The values of `graded_by`."""
# Ids of items are made of them: `2205.00048_0,1`.
FUNCTION_ID = r"^[A-Za-z0-9][A-Za-z0-9.-]*$"


def check_target(text: str) -> str:
    try:
        ((path, (name,)),) = by_file([text]).items()
    except SuperError as error:
        raise ValueError(f"is not a target: {error}") from None
    return f"{path}{SEPARATOR}{name}"


def check_paper(path: str) -> str:
    if PurePosixPath(path).suffix not in PAPER_SUFFIXES:
        raise ValueError(f"should be a file with one of the suffixes {', '.join(PAPER_SUFFIXES)}")
    return path


def as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def as_list(value: object) -> object:
    return value if isinstance(value, list) else [value]


Target = Annotated[str, AfterValidator(check_target)]
"""`path/to/file.py::Class.method`, in the repository; see `functions.masking.mask_file` for the names."""
FunctionId = Annotated[
    str, Field(pattern=FUNCTION_ID, max_length=50), BeforeValidator(as_text, json_schema_input_type=int | str)
]
Sizes = Annotated[
    list[Annotated[int, Field(ge=1)]],
    Field(min_length=1),
    BeforeValidator(as_list, json_schema_input_type=int | list[int]),
]
ValuesByName = Annotated[dict[Text, Annotated[Any, AfterValidator(check_expected)]], Field(min_length=1)]
"""Values of an experiment, by the names of its checks, whose tolerances count."""


class PaperText(FieldModel):
    """What the agent reads of the paper."""

    file: Annotated[RelativePath, AfterValidator(check_paper)]
    """Text, Markdown or PDF, which is read as text; relative to the task file."""
    redact: list[Regex] = []
    """Matches are replaced by `[redacted]`, such as numbers that are to be reproduced."""


def paper_name(paper: PaperText) -> str:
    """The file with the paper's text in the agent's working directory."""
    return "paper.md" if PurePosixPath(paper.file).suffix == ".md" else "paper.txt"


class MaskableFunction(FieldModel):
    """A function, or a marked region in one, that can be masked."""

    id: FunctionId | None = None
    """By default its position in the list, from 0."""
    target: Target
    sha256: Annotated[str, Field(pattern=SHA256)]
    """Of the original definition, as `pytest-super mask` prints it."""
    passage: str = ""
    """What the paper says about it."""
    description: str = ""
    """What it does, for the agent."""

    @property
    def file(self) -> str:
        return self.target.partition(SEPARATOR)[0]

    @property
    def name(self) -> str:
        return self.target.partition(SEPARATOR)[2]


def files_of(functions: Iterable[MaskableFunction]) -> list[str]:
    """The files with the functions, each once."""
    return list(dict.fromkeys(one.file for one in functions))


class Variation(FieldModel):
    """The experiment with another seed or argument, which no agent sees: a table of its values fails it."""

    command: Text
    """In place of the experiment's: `python train.py --seed 7`."""
    expected: ValuesByName
    """What the original code yields."""


class VariedCommand(GradedCommand):
    """A variation as a command of its own."""

    name: str

    @property
    def label(self) -> str:
        return self.name


class Experiment(GradedCommand):
    """A command that needs masked functions, and the values that it should yield."""

    name: Text = ""
    """By default `Experiment N`, its place among the experiments of the item, from 1."""
    description: Text | None = None
    """What it is, and what its values mean, for the agent."""
    paper: ValuesByName = {}
    """What the paper states; `expected` is what the original code yields."""
    graded_by: Literal["gold-run", "paper"] = "gold-run"
    """Which of the two decide, where the paper states a value."""
    functions: Annotated[list[FunctionId], Field(min_length=1)] | None = None
    """The ids of the functions that it needs; by default all."""
    vary: list[Variation] = []
    """Hidden variations, which are graded, too."""

    _is_numbered: bool = PrivateAttr(default=False)

    @property
    def label(self) -> str:
        return self.name

    @property
    def reads_seed(self) -> bool:
        return SEED_VARIABLE in self.command

    @property
    def reported(self) -> dict[str, Any]:
        """The checks whose values the agent can report, by name; by "" if there is one without a name."""
        stated = [check for check in self.checks if check.has_expected or check.interval is not None]
        if len(stated) == 1 and stated[0].name is None:
            return {"": stated[0]}
        return {check.key: check for check in stated}

    @property
    def by_paper(self) -> dict[str, Any]:
        """The values of the paper by which it is graded."""
        return self.paper if self.graded_by == PAPER else {}

    @property
    def varied_commands(self) -> list[GradedCommand]:
        return [self.varied(place, one) for place, one in enumerate(self.vary, 1)]

    def varied(self, place: int, variation: Variation) -> VariedCommand:
        checks = {check.key: check for check in self.checks}
        number = f" {place}" if len(self.vary) > 1 else ""
        return VariedCommand(
            name=f"{self.name} varied{number}",
            command=variation.command,
            timeout=self.timeout,
            files=self.files,
            result=[checks[name].expecting(value) for name, value in variation.expected.items()],
        )

    @model_validator(mode="after")
    def check_names(self) -> Self:
        keys = [check.key for check in self.checks]
        known = [check.key for check in self.checks if check.has_expected]
        for name in (*self.paper, *(name for one in self.vary for name in one.expected)):
            if name not in known:
                hint = did_you_mean(name, known) or f"; known are {', '.join(known) or 'none'}"
                raise ValueError(f"has no value `{name}` with `expected`{hint}")
            if keys.count(name) > 1:
                raise ValueError(f"has several values `{name}`: give each a `name`")
        return self

    @model_validator(mode="after")
    def check_variations(self) -> Self:
        checks = {check.key: check for check in self.checks}
        for variation in self.vary:
            if all(checks[name].allows(value) for name, value in variation.expected.items()):
                raise ValueError(f"expects the same values with `{variation.command}`, which hides nothing")
        return self

    @model_validator(mode="after")
    def check_graded_by(self) -> Self:
        if self.graded_by == PAPER and not self.paper:
            raise ValueError("needs `paper`, the values that the paper states, with `graded_by: paper`")
        return self


def numbered(experiments: Iterable[Experiment]) -> list[Experiment]:
    """The experiments of an item, or of the whole paper, with names for those that have none of their own."""
    named = []
    for place, one in enumerate(experiments, 1):
        if one._is_numbered or not one.name:
            one = one.model_copy(update={"name": f"Experiment {place}"})
            one._is_numbered = True
        named.append(one)
    return named


def as_graded(experiment: Experiment) -> Experiment:
    """The experiment whose checks expect the values that decide."""
    by_paper = experiment.by_paper
    result = [
        check.expecting(by_paper[check.key]) if check.key in by_paper else check
        for check in experiment.checks
    ]
    return experiment.model_copy(update={"result": result}) if by_paper else experiment


def graded_by(experiments: Iterable[Experiment]) -> list[str]:
    """Name whose values grade the experiments; the gold run grades their variations."""
    stated = ((one, check) for one in experiments for check in one.reported.values())
    return sorted({PAPER if check.key in one.by_paper else GOLD_RUN for one, check in stated})


def graded_commands(experiments: Iterable[Experiment]) -> tuple[GradedCommand, ...]:
    """Everything that is graded: the experiments, then their variations, which can write the same files."""
    experiments = list(experiments)
    return (*experiments, *(command for one in experiments for command in one.varied_commands))
