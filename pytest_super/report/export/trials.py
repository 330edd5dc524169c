"""The trials of a stored run, one at a time, with everything that its folder has of them."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pytest_super.redaction import is_secret_name
from pytest_super.report.notebook import Told
from pytest_super.report.page.stored import (
    GOING_ON,
    ShownRun,
    ShownTrial,
    read_run,
    read_told,
    readable_steps,
)
from pytest_super.report.page.trial import TRAJECTORY
from pytest_super.store.json_lines import escape_surrogates
from pytest_super.store.results import TrialResult
from pytest_super.store.step_values import edit_of, json_object, submitted_text
from pytest_super.store.trajectory import MESSAGE, TOOL_CALL, Step

T = TypeVar("T")
# It can hold a secret, and an export is made to be passed on.
ARGUMENTS = "arguments"
PARAMETERS = "model_parameters"


@dataclass(frozen=True, kw_only=True)
class TrialRecord:
    """A trial that has ended, with its steps."""

    result: TrialResult
    run: str
    known: dict[str, Any]
    """The fields of the result; None for what is not known."""
    told: Told
    steps: list[Step]
    unread: list[str]
    """What of its steps could not be read."""

    @property
    def name(self) -> str:
        """Another one for each trial of all runs."""
        return f"{self.run}/{self.result.id}/{self.result.epoch}.{self.result.rerun}"

    @property
    def submission(self) -> str | None:
        return submitted_text(self.steps)


@dataclass(kw_only=True)
class StoredTrials:
    """The trials of a run that have ended, ordered by task and epoch; each one's last rerun."""

    run: ShownRun
    facts: dict[str, Any]
    """What was run, without what can hold a secret."""
    results: list[TrialResult]
    unfinished: int
    unread: list[str] = field(default_factory=list)
    """What could not be read, so far."""

    def converted(self, convert: Callable[[TrialRecord], T]) -> Iterator[T]:
        """Reads and converts one trial after the other: their steps do not fit into memory together."""
        for one in self.run.trials:
            if one.outcome == GOING_ON:
                continue
            try:
                record = read_record(self.run, one)
                found = convert(record)
            except RecursionError:
                self.unread.append(f"the trial {one.result.name} is nested too deeply")
                continue
            self.unread += [f"{one.folder}: {text}" for text in record.unread]
            yield found


def read_trials(folder: Path) -> StoredTrials:
    """The trials of the run in a folder, which can be damaged: what cannot be read is named."""
    run = read_run(folder)
    run.trials.sort(key=lambda one: (one.result.id, one.result.epoch))
    ended = [one.result for one in run.trials if one.outcome != GOING_ON]
    unread = list(run.unread)
    return StoredTrials(
        run=run,
        facts=public_facts(run, unread),
        results=ended,
        unfinished=len(run.trials) - len(ended),
        unread=unread,
    )


def public_facts(run: ShownRun, unread: list[str]) -> dict[str, Any]:
    facts = {name: value for name, value in run.facts.items() if name != ARGUMENTS}
    try:
        if PARAMETERS in facts:
            facts[PARAMETERS] = without_secrets(facts[PARAMETERS])
        known: dict[str, Any] = json.loads(to_json(escape_surrogates(facts)))
    except RecursionError:
        unread.append("run.json is nested too deeply")
        return {}
    return known


def read_record(run: ShownRun, trial: ShownTrial) -> TrialRecord:
    """Raises RecursionError."""
    unread: list[str] = []
    steps = readable_steps(run.folder, f"{trial.folder}/{TRAJECTORY}", unread)
    return TrialRecord(
        result=trial.result,
        run=run.name,
        known=trial.result.to_known_data(),
        told=read_told(run.folder, trial),
        steps=steps,
        unread=unread,
    )


def without_secrets(value: Any) -> Any:
    """Parameters of a model can be headers with a key."""
    if isinstance(value, dict):
        return {name: without_secrets(child) for name, child in value.items() if not is_secret_name(name)}
    return [without_secrets(child) for child in value] if isinstance(value, list) else value


def to_json(value: Any) -> str:
    """A value as JSON, where NaN and infinity are texts: JSON has no such numbers. Raises RecursionError."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(without_infinity(value), allow_nan=False)


def without_infinity(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: without_infinity(child) for key, child in value.items()}
    if isinstance(value, list):
        return [without_infinity(child) for child in value]
    return value


# These have a place of their own in both formats.
PLACED = ("action", "thought", "observation")
# The names of the argument, by the type of the action: those by which viewers know code and answers.
ARGUMENT_NAMES = {"execute": "code", "submit": "answer"}


def is_call(step: Step) -> bool:
    """Whether the step is the call of a tool, and not an answer of the model that only says something."""
    return step.action.type not in ("", MESSAGE)


def function_of(step: Step) -> tuple[str, dict[str, Any]]:
    """The action of a step as the name and the arguments of a tool call."""
    kind, content = step.action.type, step.action.content
    if kind == TOOL_CALL and (called := json_object(content)) and "name" in called:
        arguments = json_object(str(called.get("arguments")))
        return str(called["name"]), arguments or {"content": called.get("arguments")}
    edit = edit_of(content) if kind == "edit" else None
    return kind, edit or {ARGUMENT_NAMES.get(kind, "content"): content}


def rest_of(step: Step) -> dict[str, Any]:
    """All other fields of a step, among them the outputs of its cell as in a notebook."""
    rest = {name: value for name, value in asdict(step).items() if name not in PLACED}
    if not has_model_call(step):
        rest |= {"prompt_tokens": None, "completion_tokens": None}
    return rest


def has_model_call(step: Step) -> bool:
    """Whether tokens were counted in the step: a call of a model has at least those of its prompt."""
    return bool(step.prompt_tokens or step.completion_tokens)
