"""The results of trials, each field declared once, and the names of what a run stores of a trial."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pytest_super.store.field_declarations import Field, Unit, declared_fields
from pytest_super.store.json_lines import escape_surrogates, read_json, read_lines
from pytest_super.store.trajectory import Step

FORMAT = 2
"""The version of the format of a run's files. Since 2 the metrics of a trial are in `metrics`."""

RUNNING = "running"
INTERRUPTED = "interrupted"
RUN_COST = "run_cost"
"""The stop reason of a trial that ended because the run had reached its limit of cost."""
# `<epoch>.<rerun>`
TRIAL_FOLDER = re.compile(r"\d+\.\d+")

Objects = list[dict[str, Any]]
SECONDS, DOLLARS, TOKENS = Unit("seconds", "{:.1f} s"), Unit("US dollars", "${:.4f}"), Unit("tokens", "{:,}")
# Every trial takes some time, unless the process that ran it died before it could tell.
TIME = Field(unit=SECONDS, unmeasured=lambda result: not result.wall_seconds)
COMPUTE_TIME = replace(TIME, label="compute time", absent="0.0 s", total="compute")
MODEL_TIME = Field(unit=SECONDS, unmeasured=lambda result: result.model is None or not result.wall_seconds)
GRADING_TIME = Field(unit=SECONDS, label="grading time", unmeasured=lambda result: not result.graded_in)
MODEL_TOKENS = Field(unit=TOKENS, unmeasured=lambda result: result.model is None)
RECORDED_COST = Field(unit=DOLLARS, label="cost of recorded answers", total="recorded")
COST = Field(unit=DOLLARS, label="cost", absent="not known", total="cost")
# The trial's name and its metrics show the same, or only commands that compare trials use it.
ELSEWHERE = Field(page=False, notebook=False, junit=False)
# Without scores, a trial is neither solved nor missed.
SOLVED = Field(absent="no", column="solved", unmeasured=lambda result: not result.is_scored)
ANSWERED = replace(ELSEWHERE, unmeasured=lambda result: not result.submitted and not result.is_scored)
# The page and the notebook have these in another form.
JUNIT_ONLY = Field(page=False, notebook=False)
# JUnit XML has no form for them, or has it as the failure or the error.
NOT_JUNIT = Field(junit=False)


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """Everything that is stored about one trial, as plain JSON values, because it crosses processes.

    Each field is declared here alone (see `field_declarations`); its text is in docs/reference/results.md.
    """

    id: Annotated[str, ELSEWHERE]
    """The task."""
    set: str
    """Its set."""
    category: Annotated[str | None, Field(absent="none")] = None
    """Its category."""
    epoch: int
    """Number of the repeat, from 1."""
    rerun: Annotated[int, JUNIT_ONLY]
    """1 if run again because its worker died, else 0."""
    solved: Annotated[bool, SOLVED] = False
    """Whether the headline metric is best."""
    stop_reason: Annotated[str, Field(label="stopped")] = RUNNING
    """Why the trial ended, [see below](#stop-reasons)."""
    error: Annotated[str | None, NOT_JUNIT] = None
    """The infrastructure failure, or what interrupted the trial."""
    agent_error: Annotated[str | None, Field(label="the agent's error", junit=False)] = None
    """The agent's traceback; a program's exit code and last line."""
    headline: str = ""
    """The metric that decides `solved`."""
    metrics: Annotated[dict[str, float | None], Field(label="score", absent="none", junit=False)] = field(
        default_factory=dict
    )
    """The value of each [metric](metrics.md) by name; all `null` in an error."""
    cause: Annotated[str, Field(absent="none", unmeasured=lambda result: not result.is_scored)] = ""
    """[Why the task is not solved](metrics.md#causes)."""
    difference: Annotated[str, Field(label="wrong values", absent="none known")] = ""
    """The first wrong values, with the gold ones."""
    submitted: Annotated[bool, ANSWERED] = False
    """Whether there is a submission."""
    text_read: Annotated[bool, Field(label="read from a text")] = False
    """Whether [the JSON in a text](metrics.md#accuracy) was scored."""
    landmarks_found: Annotated[Objects, Field(label="landmark", page=False, junit=False)] = field(
        default_factory=list
    )
    """For each landmark: `pattern`, first `step` (`null`: missed), [`is_echo`,
    `timed_out`](metrics.md#landmarks)."""
    entrypoint_process: Annotated[dict[str, Any] | None, Field(label="script", junit=False)] = None
    """The [process](#processes) that ran the entrypoint, with `script`."""
    graded: Annotated[Objects, NOT_JUNIT] = field(default_factory=list)
    """For each value of the [grader](grading.md): `name`, `score`, `found`, `expected`, `why` there is
    none, `command`, `exit_code`, the end of what was `printed`."""
    graded_in: str = ""
    """The sandbox of the grader: `fresh` or `same`."""
    graded_by: list[str] = field(default_factory=list)
    """Of a [paper](papers.md#experiments): whose values decide."""
    grade_seconds: Annotated[float, GRADING_TIME] = 0.0
    """Time of grading."""
    changed_elsewhere: list[str] | None = None
    """Up to 100 files that the agent changed and the grader did not collect."""
    taken: list[str] = field(default_factory=list)
    """Of a [paper](papers.md#what-a-body-needs): what was graded besides the bodies, as `file: name`."""
    left_out: list[str] = field(default_factory=list)
    """Of a paper: other changes in these files, not graded."""
    whole_file: Annotated[Objects | None, NOT_JUNIT] = None
    """Of a [paper](papers.md#how-it-is-graded): the values with the agent's whole files."""
    masked: dict[str, Any] | None = None
    """Of a paper: [what may make it hard](papers.md#what-reports-say)."""
    integrity: Annotated[Objects | None, Field(label="look twice", page=False)] = None
    """[Signs](metrics.md#integrity): `kind`, `step`, `evidence`, `is_suspect`; `null` if nobody
    looked."""
    unseen: list[str] = field(default_factory=list)
    """What could not be observed for them."""
    compute_seconds: Annotated[float, COMPUTE_TIME] = 0.0
    """Charged [compute time](task-format.md#compute-time)."""
    model_seconds: Annotated[float, replace(MODEL_TIME, label="model time", total="model")] = 0.0
    """Time of waiting for the model."""
    waited_seconds: Annotated[float, replace(MODEL_TIME, label="waited")] = 0.0
    """The part of `model_seconds` that was [waiting](models.md#waiting)."""
    wall_seconds: Annotated[float, replace(TIME, label="total time")] = 0.0
    """Total time."""
    prompt_tokens: Annotated[int, replace(MODEL_TOKENS, page=False, notebook=False)] = 0
    """Tokens of the prompts."""
    cached_tokens: Annotated[int, MODEL_TOKENS] = 0
    """The part of `prompt_tokens` from the provider's cache."""
    completion_tokens: Annotated[int, replace(MODEL_TOKENS, page=False, notebook=False)] = 0
    """Tokens of the model's answers."""
    cost_usd: Annotated[float | None, COST] = None
    """Cost of the calls of known price."""
    recorded: Annotated[int, Field(label="recorded answers")] = 0
    """Answers from [an earlier run](answers.md)."""
    recorded_usd: Annotated[float, RECORDED_COST] = 0.0
    """The part of `cost_usd` for them, paid then."""
    provided: Annotated[int, Field(label="answers of the provider")] = 0
    """Answers that the provider gave in this run."""
    steps: Annotated[int, Field(absent="0")] = 0
    """The agent's steps, without pre-executed ones."""
    repeats: Annotated[int, Field(label="equal steps in a row")] = 0
    """The most equal steps in a row."""
    dropped: Annotated[int, Field(unmeasured=TIME.unmeasured)] = 0
    """[Frames and messages of the sandbox](sandboxes.md#what-comes-out) that were dropped."""
    agent: str
    """From `--super-agent`."""
    agent_version: str = ""
    """The version of [an agent's program](agents/by-name.md) in the image."""
    model: Annotated[str | None, Field(absent="none")] = None
    """From `--super-model`."""
    sandbox: str = ""
    """The name of the [sandbox](sandboxes.md), such as `docker`."""
    isolated: bool | None = None
    """Whether it is isolated from the host; `null` without a sandbox."""
    software: str = ""
    """Digest of the image, or version of the local Python."""
    environment: Annotated[dict[str, str], NOT_JUNIT] = field(default_factory=dict)
    """The [fixed variables](sandboxes.md#fixed-variables) of the sandbox."""
    repository: str = ""
    """The repository without its version: URL, name on the index, or path."""
    conditions: Annotated[str, ELSEWHERE] = ""
    """A [digest](comparing.md#what-may-be-compared) of what is around the agent."""
    subject: Annotated[str, ELSEWHERE] = ""
    """A digest of the agent and the model."""
    scoring: Annotated[str, ELSEWHERE] = ""
    """A digest of what decides the scores."""
    weight: float = 1.0
    """Weight in means."""
    applicable: Annotated[list[str], ELSEWHERE] = field(default_factory=list)
    """The metrics that apply to the task."""
    metric_versions: Annotated[dict[str, int], ELSEWHERE] = field(default_factory=dict)
    """Their versions."""
    started: Annotated[str, Field(absent="not known")] = ""
    """Start time, in ISO 8601 with offset."""
    worker: Annotated[str, Field(absent="not known")] = ""
    """The xdist worker (`gw0`), or `main`."""
    resumed_from: Annotated[str, Field(label="taken over from")] = ""
    """The run that ran the trial, if it was [taken over](results.md#nothing-is-paid-for-twice) or
    [scored again](rescoring.md#a-run-of-the-new-scores)."""
    forked_from: Annotated[str, Field(label="forked from")] = ""
    """The run, trial and step from which [a fork](answers.md#going-on-from-a-step) continues."""
    fork_difference: Annotated[str, Field(label="replayed otherwise")] = ""
    """The first step of a fork that differs from the recorded one, and how."""
    folder: Annotated[str, JUNIT_ONLY] = ""
    """The trial's folder, relative to the run's."""
    kept: str | None = None
    """The command that enters the kept sandbox."""

    @property
    def tokens(self) -> Annotated[int, Field(unit=TOKENS, total="tokens")]:
        """Tokens of prompts and answers."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def whole_file_differs(self) -> Annotated[bool | None, JUNIT_ONLY]:
        """Whether the files as the agent left them score otherwise than what was graded."""
        if self.whole_file is None:
            return False if self.masked else None
        return [one["score"] for one in self.whole_file] != [one["score"] for one in self.graded]

    def to_known_data(self) -> dict[str, Any]:
        """The stored fields, with None for each that has no value. Raises RecursionError."""
        data, known = self.to_data(), {one.name: one.is_known(self) for one in stored_fields()}
        return {name: value if known[name] else None for name, value in data.items()}

    @property
    def name(self) -> str:
        return epoch_name(self.id, self.epoch)

    @property
    def headline_value(self) -> float | None:
        """What decides whether the task is solved; None if that is not known."""
        return self.metrics.get(self.headline)

    @property
    def is_error(self) -> bool:
        return self.error is not None

    @property
    def is_scored(self) -> bool:
        return not self.is_error and not self.is_interrupted

    @property
    def is_interrupted(self) -> bool:
        """Whether the end of the run ended the trial. It is not valid, but nothing failed."""
        return self.stop_reason in (INTERRUPTED, RUN_COST)

    def to_data(self) -> dict[str, Any]:
        # Not `asdict`, which copies every value once more: there are runs of thousands.
        data: dict[str, Any] = escape_surrogates(vars(self))
        return data

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> TrialResult:
        """The result in `data`. Keys of a later version are ignored. Raises TypeError."""
        if not isinstance(data, dict):
            raise TypeError("a result is not an object")
        return cls(**{one.name: data[one.name] for one in stored_fields() if one.name in data})


@cache
def result_fields() -> list[Field]:
    """The declared fields; made once, because there are runs of thousands."""
    return declared_fields(TrialResult)


@cache
def stored_fields() -> list[Field]:
    return [one for one in result_fields() if one.is_stored]


def folder_name(result: TrialResult) -> str:
    """The folder of a trial, relative to its run's; the field `folder` of a stored result can be edited."""
    return f"trials/{result.id}/{result.epoch}.{result.rerun}"


def epoch_name(task_id: str, epoch: int) -> str:
    return task_id if epoch == 1 else f"{task_id}[{epoch}]"


def task_and_epoch(name: str) -> tuple[str, int]:
    """The inverse."""
    task_id, bracket, epoch = name.partition("[")
    return task_id, int(epoch.rstrip("]")) if bracket else 1


def most_repeats(steps: Iterable[Step]) -> int:
    return max((step.repeats for step in steps), default=0)


def read_results(run: Path) -> list[TrialResult]:
    """The results of a stored run."""
    return [TrialResult.from_data(data) for data in read_lines(run / "results.jsonl")]


def read_result(path: Path) -> TrialResult | None:
    try:
        return TrialResult.from_data(escape_surrogates(read_json(path)))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
