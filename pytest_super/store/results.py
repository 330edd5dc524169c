"""The results of trials, and where each is stored. Nothing is lost when a process dies.

.super/runs/<run>/run.json                     what was run, and by which versions
                  results.jsonl                a line for each trial, append-only, written by the controller
                  trouble.jsonl                a line for each failure after a trial, if there are any
                  trials/<task>/<epoch>.<rerun>/result.json          written by the process that ran the trial
                                                  trajectory.jsonl   a line for each step, as it is taken
                                                  trajectory.ipynb
                                                  activity.json      what it is doing, while it runs
.super/runs/latest                             a link to the newest run
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_super.store.json_lines import escape_surrogates, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pytest_super.store.trajectory import Step

FORMAT = 2
"""The version of the format of a run's files. Since 2 the metrics of a trial are in `metrics`."""

RUNNING = "running"
INTERRUPTED = "interrupted"
RUN_COST = "run_cost"
"""The stop reason of a trial that ended because the run had reached its limit of cost."""
# `<epoch>.<rerun>`
TRIAL_FOLDER = re.compile(r"\d+\.\d+")


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """Everything that is stored about one trial, as plain JSON values, because it crosses processes."""

    id: str
    set: str
    category: str | None
    epoch: int
    rerun: int
    """0, or more if the trial was run again because its worker died."""
    agent: str
    agent_version: str = ""
    """The version of the agent's program in the sandbox's image; "" for an agent without one."""
    model: str | None = None
    sandbox: str = ""
    isolated: bool | None = None
    """None until the trial's sandbox is made."""
    software: str = ""
    """What is installed in it: the image, or the Python of a local sandbox."""
    environment: dict[str, str] = field(default_factory=dict)
    """The variables that all sandboxes fix, or what the task sets them to: time zone, hash seed, locale."""
    conditions: str = ""
    """A digest of everything around the agent. Only trials with equal ones can be compared."""
    subject: str = ""
    """A digest of what is tried: the agent and its code, the model, and their parameters."""
    scoring: str = ""
    """A digest of what decides the scores."""
    headline: str = ""
    """The name of the metric that decides whether the task is solved."""
    weight: float = 1.0
    """How much the task counts in means."""
    applicable: list[str] = field(default_factory=list)
    """Names of the metrics that apply to the task, known before the trial."""
    metric_versions: dict[str, int] = field(default_factory=dict)
    """The version of each of them for this task: values of several versions cannot be compared."""
    metrics: dict[str, float | None] = field(default_factory=dict)
    """The value of every metric by name, in the order of the columns; None if the metric does not apply, its
    value is not known, or the trial is an error."""
    landmarks_found: list[dict[str, Any]] = field(default_factory=list)
    """For each landmark: pattern, step that hit it first (None: missed), is_echo, timed_out."""
    graded: list[dict[str, Any]] = field(default_factory=list)
    """For each value of the task's grader: name, score, found, expected, why, printed, command."""
    graded_in: str = ""
    """`fresh` or `same`: the sandbox in which the grader ran; "" without one."""
    changed_elsewhere: list[str] | None = None
    """Files that the agent changed and the grader did not collect; None if that is not known."""
    taken: list[str] = field(default_factory=list)
    """For an item of a paper: what was graded besides the masked bodies, as `file: name`."""
    left_out: list[str] = field(default_factory=list)
    """What else the agent has changed in their files, as `file: name` or `file: line N`."""
    whole_file: list[dict[str, Any]] | None = None
    """The values of the grader with their files as the agent left them; None if they are what was graded."""
    masked: dict[str, Any] | None = None
    """For an item of a paper: n, its targets, lines, files, calls among them, experiments, passages."""
    grade_seconds: float = 0.0
    entrypoint_process: dict[str, Any] | None = None
    """The observed process that ran the entrypoint; None without one."""
    difference: str = ""
    """The submission's values that are wrong, next to the gold ones; the first of them, clipped."""
    submitted: bool = False
    solved: bool = False
    stop_reason: str = RUNNING
    compute_seconds: float = 0.0
    model_seconds: float = 0.0
    wall_seconds: float = 0.0
    waited_seconds: float = 0.0
    """The part of `model_seconds` that was waiting for rate limits and retries. It is not in the budget."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Of the prompt tokens: read from the provider's cache."""
    completion_tokens: int = 0
    cost_usd: float | None = None
    steps: int = 0
    """The agent's own steps."""
    repeats: int = 0
    """The largest number of equal steps in a row: the same action with the same observation."""
    dropped: int = 0
    """Frames and messages from its sandbox that did not fit (see kernel.incoming)."""
    error: str | None = None
    """What failed around the agent; None for a valid trial."""
    agent_error: str | None = None
    """The traceback of an agent that raised, or how a program ended that left no answer."""
    started: str = ""
    repository: str = ""
    """The task's repository without its version: a URL, a name on the index, or a path."""
    worker: str = ""
    """The process that ran the trial: the id of an xdist worker, or `main`."""
    resumed_from: str = ""
    """The run that has run the trial, if a later one has taken it over or scored it again."""
    folder: str = ""
    """The folder of its files, relative to the run's folder."""
    kept: str | None = None
    """How to enter the sandbox that was kept."""

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
    def whole_file_differs(self) -> bool:
        """Whether the files as the agent left them score otherwise than what was graded."""
        whole = self.whole_file
        return whole is not None and [one["score"] for one in whole] != [one["score"] for one in self.graded]

    @property
    def is_interrupted(self) -> bool:
        """Whether the end of the run ended the trial. It is not valid, but nothing failed."""
        return self.stop_reason in (INTERRUPTED, RUN_COST)

    def to_data(self) -> dict[str, Any]:
        data: dict[str, Any] = escape_surrogates(asdict(self))
        return data

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> TrialResult:
        """The result in `data`. Keys of a later version are ignored. Raises TypeError."""
        if not isinstance(data, dict):
            raise TypeError("a result is not an object")
        known = field_names()
        return cls(**{key: value for key, value in data.items() if key in known})


@cache
def field_names() -> frozenset[str]:
    """Of a result; made once, because there are runs of thousands."""
    return frozenset(one.name for one in fields(TrialResult))


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
        return TrialResult.from_data(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
