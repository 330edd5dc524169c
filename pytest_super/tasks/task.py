"""The task: one research problem, as defined in its task file.

The models are frozen and strictly validated. `loading` reads them from YAML with line numbers.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, model_validator

from pytest_super.tasks.fields import (
    CATEGORY,
    COMMIT,
    SHA256,
    TASK_ID,
    FieldModel,
    Regex,
    RelativePath,
    Seconds,
    Text,
)
from pytest_super.tasks.grade import Aggregation, Grade
from pytest_super.tasks.paper import Experiment, MaskableFunction, PaperText, Sizes, as_graded, numbered
from pytest_super.tasks.sandbox_spec import SandboxSpec

TASK_SUFFIX = ".task.yaml"
# The categories of the SUPER paper, in the order of its table 3. Tasks can have others.
CATEGORIES = ("dependencies", "cpu", "configuration", "data", "issue", "goal", "other")

# Token budgets of the SUPER paper (section 4): the sum of prompt tokens over all calls of a trial.
TOKEN_BUDGETS = {"expert": 600_000, "auto": 600_000, "masked": 400_000, "functions": 600_000}
# Larger than any budget, and small enough for floats.
MOST_TOKENS = 10**15
# The longest published trajectory of SUPER's expert set has 74 steps.
MAX_STEPS = 500
# Published trajectories took up to 34 minutes, and up to 16 seconds of model time a step. The default leaves
# at least 85 seconds for each of 74 steps. The floor, in seconds, is for tasks with little compute time, for
# which the model is asked as often as for others.
WALL_FACTOR, SHORTEST_WALL = 8, 7200.0

SetName = Literal["expert", "masked", "auto", "functions"]
Split = Literal["train", "dev", "test"]


class Repository(FieldModel):
    """The source of the research code: exactly one of `git`, `pypi`, `path`."""

    git: Text | None = None
    """URL of a git repository; needs `commit`."""
    commit: Annotated[str, Field(pattern=COMMIT)] | None = None
    """The full commit hash."""
    pypi: Text | None = None
    """Name of a project on the package index; needs `version` and `sha256`."""
    version: Text | None = None
    sha256: Annotated[str, Field(pattern=SHA256)] | None = None
    """Digest of the source distribution."""
    path: RelativePath | None = None
    """A folder, relative to the task file."""
    provide: bool = False
    """Copy it into the working directory before the agent starts; else the agent fetches it, as in SUPER."""

    @property
    def name(self) -> str:
        """What it is called, whatever its version: tasks of one repository are alike."""
        return self.git or self.pypi or str(self.path)

    check_kind = FieldModel.one_of("git", "pypi", "path")

    @model_validator(mode="after")
    def check_source(self) -> Self:
        sources = {"git": ("commit",), "pypi": ("version", "sha256"), "path": ()}
        source = next(name for name in sources if getattr(self, name) is not None)
        needed = sources[source]
        missing = [name for name in needed if getattr(self, name) is None]
        surplus = [
            name for name in ("commit", "version", "sha256") if name not in needed and getattr(self, name)
        ]
        if missing:
            raise ValueError(f"with {source} needs {' and '.join(missing)}")
        if surplus:
            raise ValueError(f"with {source} takes no {' and no '.join(surplus)}")
        return self


class Entrypoint(FieldModel):
    """The script that has to run for the metric script_executed."""

    path: RelativePath
    # Processes are looked at twice a second: a shorter run can be missed.
    min_seconds: Annotated[float, Field(ge=0.5, allow_inf_nan=False)] = 10.0
    """A shorter run does not count (SUPER, appendix B.2)."""


class Edit(FieldModel):
    """Replaces `before`, which must occur exactly once in the file, by `after`."""

    path: Text
    before: Annotated[str, Field(min_length=1)]
    after: str


def cell_or_edit(value: object) -> object:
    return {"cell": value} if isinstance(value, str) else value


class PreExecuted(FieldModel):
    """A cell or an edit that is run before the agent starts, without charge and without credit."""

    cell: Text | None = None
    edit: Edit | None = None
    files: bool = False
    """Later steps need nothing of this cell but the files that it writes, so a snapshot can cover it."""

    check_kind = FieldModel.one_of("cell", "edit")


class Limits(FieldModel):
    """The budget of a trial. Times in seconds."""

    compute: Seconds = 1800.0
    """Running time of all cells; model time is not counted (SUPER, section 4)."""
    cell: Seconds = 300.0
    """A cell that runs longer times out: the agent then waits again or interrupts it."""
    tokens: Annotated[int, Field(gt=0, le=MOST_TOKENS)] | None = None
    """Sum of prompt tokens over all calls; by default the paper's limit for the set."""
    cost: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """US dollars."""
    steps: Annotated[int, Field(gt=0)] = MAX_STEPS
    """Actions of the agent."""
    wall: Seconds | None = None
    """Total time, including model time but not waiting for rate limits and retries; by default 8 times
    `compute`, and at least two hours."""

    @property
    def wall_or_default(self) -> float:
        return self.wall or max(SHORTEST_WALL, WALL_FACTOR * self.compute)


class Solution(FieldModel):
    """The gold solution: cells in the file, or a notebook next to it."""

    cells: Annotated[list[Text], Field(min_length=1)] | None = None
    notebook: RelativePath | None = None
    answer_cell: Annotated[int, Field(ge=1)] | None = None
    """Number of the code cell whose value is submitted, from 1; by default the last cell."""

    check_kind = FieldModel.one_of("cells", "notebook")


def check_cell(value: object) -> object:
    is_number = isinstance(value, int) and not isinstance(value, bool) and value > 0
    if not is_number and not (isinstance(value, str) and value):
        raise ValueError("should be a cell: its number, from 1, its id, or a tag that it has")
    return value


def step_of(value: object) -> object:
    return {"solution_cell": value} if isinstance(value, int | str) else value


CellReference = Annotated[int | str, BeforeValidator(check_cell, json_schema_input_type=int | str)]


class PrefixStep(PreExecuted):
    """A step that runs before a sub-problem: a cell of the solution, or another cell or edit."""

    solution_cell: CellReference | None = None
    files: bool = False
    """The same as in the task's own `pre_execute`. A cell of a notebook can have the tag `files` instead."""

    check_kind = FieldModel.one_of("solution_cell", "cell", "edit")


class SubProblem(FieldModel):
    """A masked task that is cut from the solution of its task (SUPER, section 3.2).

    Fields that are left out are taken from that task, except `metadata`.
    """

    id: Annotated[str, Field(pattern=TASK_ID, max_length=200)]
    category: Annotated[str, Field(pattern=CATEGORY)]
    query: Text
    """The part that remains to be done."""
    mask: Annotated[list[CellReference], Field(min_length=1)]
    """The cells that are removed."""
    goal: CellReference | None = None
    """The last cell of the sub-problem's solution, after all masked cells; by default the answer's cell."""
    submit: Text | None = None
    """Code that is run after the goal and whose value is the answer; by default the goal's own value is."""
    pre_execute: (
        list[Annotated[PrefixStep, BeforeValidator(step_of, json_schema_input_type=int | str | PrefixStep)]]
        | None
    ) = None
    """Steps that run before the agent starts; by default all cells before the first masked one."""
    solution: Annotated[list[CellReference], Field(min_length=1)] | None = None
    """The cells that solve it; by default all cells up to the goal that are not pre-executed."""
    answer: Any = None
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    grade: Grade | None = None
    """null removes the grader."""
    landmarks: list[Regex] | None = None
    entrypoint: Entrypoint | None = None
    """null removes the entrypoint."""
    sandbox: SandboxSpec | None = None
    """Its fields override those of the task."""
    limits: Limits | None = None
    """Its fields override those of the task."""
    tags: list[Text] | None = None
    metadata: dict[str, Any] = {}


DEFAULT_SANDBOX = SandboxSpec()
DEFAULT_LIMITS = Limits()


class Task(FieldModel):
    """One problem, as defined in its task file."""

    id: Annotated[str, Field(pattern=TASK_ID, max_length=200)]
    set: SetName
    category: Annotated[str, Field(pattern=CATEGORY)] | None = None
    query: Text
    repository: Repository | None = None
    answer: Any = None
    """The gold answer: any JSON value."""
    answer_unknown: bool = False
    """There is no gold answer, as in some published data, so accuracy is null."""
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.01
    """The largest absolute difference between a correct number and the gold number."""
    grade: Grade | None = None
    """A command decides whether the task is solved, instead of the answer."""
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """How much the task counts in means."""
    landmarks: list[Regex] = []
    entrypoint: Entrypoint | None = None
    pre_execute: list[
        Annotated[PreExecuted, BeforeValidator(cell_or_edit, json_schema_input_type=str | PreExecuted)]
    ] = []
    solution: Solution | None = None
    # Factories that return one shared frozen instance: pydantic would deep-copy a default for every task.
    sandbox: SandboxSpec = Field(default_factory=lambda: DEFAULT_SANDBOX)
    limits: Limits = Field(default_factory=lambda: DEFAULT_LIMITS)
    tags: list[Text] = []
    subproblems: list[SubProblem] = []
    """Masked tasks that are made from cells of the solution."""
    paper: PaperText | None = None
    """With `set: functions`, as the next four: what the agent reads."""
    functions: list[MaskableFunction] = []
    """The functions that are masked, in combinations: each combination is an item."""
    experiments: Annotated[
        list[Annotated[Experiment, AfterValidator(as_graded)]], AfterValidator(numbered)
    ] = []
    """The commands that grade an item: those that need one of its masked functions."""
    aggregate: Aggregation = "all"
    """What the metric `graded` of an item is made of."""
    n: Sizes = [1]
    """How many functions are masked together, without `--super-n`."""
    split: Split | None = None
    """What the task is for; `--super-split` selects by it."""
    metadata: dict[str, Any] = {}
    """Other facts about the task. They are stored, but not used and not shown to agents."""

    _path: str = PrivateAttr(default="")
    _line: int = PrivateAttr(default=1)

    @property
    def has_answer(self) -> bool:
        """Whether its file states an answer."""
        return "answer" in self.model_fields_set

    @property
    def folder(self) -> Path:
        """The folder of its task file: the paths in the file are relative to it."""
        return Path(self._path).parent

    @property
    def place(self) -> str:
        """Its task file and line, for messages."""
        return f"{self._path}:{self._line}"
