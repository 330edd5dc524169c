"""The sides of a comparison: the valid trials of runs, by task, and which of them can be compared."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

from pytest_super.errors import SuperError
from pytest_super.gate.errors import decide_nothing
from pytest_super.metrics.leaves import is_number
from pytest_super.store.json_lines import UNREADABLE, damage, read_json
from pytest_super.store.results import TrialResult
from pytest_super.store.run_folder import last_results, trials_by_task


@dataclass(frozen=True, kw_only=True)
class TaskTrials:
    """The valid trials of one task; what a trial used is a mean over them."""

    set: str
    conditions: str
    scoring: str
    weight: float
    values: list[float]
    """The headline metric of each trial, in the order of the runs and their epochs."""
    of_runs: list[int] = field(default_factory=list)
    """How many of them are of each run of the side; empty if that is not known."""
    repository: str = ""
    replayed: dict[int, float] = field(default_factory=dict)
    """The values of trials that got recorded answers to all of their requests, by their epochs."""
    stops: dict[str, int] = field(default_factory=dict)
    """How many of the trials ended for which reason."""
    causes: dict[str, int] = field(default_factory=dict)
    """How many of the trials did not solve the task for which cause."""
    cost_usd: float | None = None
    tokens: float = 0.0
    seconds: float = 0.0
    """Wall time without waiting for rate limits and retries."""

    def __post_init__(self) -> None:
        """Raises ValueError for anything but these types and ranges, as a damaged file has."""
        if not all(isinstance(text, str) for text in (self.set, self.conditions, self.scoring)):
            raise ValueError("`set`, `conditions` and `scoring` should be texts")
        if not self.values or not all(is_number(value) and 0 <= value <= 1 for value in self.values):
            raise ValueError(f"`values` should be numbers from 0 to 1, not {self.values}")
        used = [self.tokens, self.seconds, *([] if self.cost_usd is None else [self.cost_usd])]
        if not all(is_number(value) and value >= 0 for value in used):
            raise ValueError("`tokens`, `seconds` and `cost_usd` should be numbers from 0 on")
        if not is_number(self.weight) or self.weight <= 0:
            raise ValueError("`weight` should be a number above 0")
        if not all(
            isinstance(one, int) and one >= 0
            for one in [*self.of_runs, *self.stops.values(), *self.causes.values()]
        ):
            raise ValueError("`of_runs`, `stops` and `causes` should be numbers of trials")

    @property
    def by_run(self) -> list[int]:
        """How many of the values are of each run; all of the first one if that is not known."""
        return self.of_runs if sum(self.of_runs) == len(self.values) else [len(self.values)]

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """The run and the epoch of each value. After an error, the epochs of a run are one too low."""
        return [(run, place) for run, number in enumerate(self.by_run) for place in range(number)]


@dataclass(frozen=True, kw_only=True)
class Side:
    """What was tried, and its trials."""

    name: str
    """For people: the run's id, or the name of a file."""
    run: str
    """The run's id."""
    subject: dict[str, Any]
    tasks: dict[str, TaskTrials]
    trials: int
    errors: dict[str, int] = field(default_factory=dict)
    """How many trials of each task ended with an error; only of tasks that have one."""
    runs: dict[str, str] = field(default_factory=dict)
    """The runs that ran the trials, each with the date of its newest one; "" if that is not known."""
    mixed: list[str] = field(default_factory=list)
    """Tasks whose trials cannot be compared with each other: something around the agent changed meanwhile."""
    pooled: dict[str, int] = field(default_factory=dict)
    """How many of the trials are of which earlier run of the same subject."""
    looks: int = 0
    """How often earlier runs of the same subject were compared with the same baseline."""
    subjects: int = 0
    """How many other subjects were compared with the same baseline."""
    not_run: Collection[str] = ()
    """Tasks that the run has left out, because its baseline never solved them."""
    answers: str = ""
    """The run whose recorded answers the trials got; "" for none."""
    arguments: Sequence[str] = ()
    """The command line of a run that is compared as it ends, without the name of the program."""

    @property
    def has_too_many_errors(self) -> bool:
        """Whether it decides nothing, whatever its valid trials say."""
        return decide_nothing(sum(self.errors.values()), self.trials)

    def age(self, today: date) -> int | None:
        """How many days ago the newest trial ran; None if that is not known."""
        known = [one for one in self.runs.values() if one]
        return max((today - date.fromisoformat(max(known))).days, 0) if known else None

    @property
    def epochs(self) -> int:
        return max((len(task.values) for task in self.tasks.values()), default=0)


def side_of_run(folder: Path, without: Collection[str] = ()) -> Side:
    """Read a run, `without` the trials of some. Raises SuperError if it is not there or cannot be read."""
    try:
        results = last_results(folder)
        facts = read_json(folder / "run.json")
        id = str(facts["id"])
        others = [one for one in results if (one.resumed_from or id) not in without]
        side = side_of(id, facts.get("subject") or {"agent": facts["agent"]}, others)
        not_run = [str(task) for task in facts.get("not_run") or ()]
        # Trials that were taken over can have recorded answers, too.
        answers = facts.get("answers") or next((one.resumed_from for one in others if one.recorded), "")
        return replace(side, not_run=not_run, answers=str(answers))
    except FileNotFoundError:
        raise SuperError(f"there is no run in {folder}: name a folder with results.jsonl") from None
    except UNREADABLE as error:
        raise SuperError(f"{folder}: the run cannot be read: {damage(error)}") from None


def side_of(name: str, subject: dict[str, Any], results: Iterable[TrialResult]) -> Side:
    ended = [one for one in results if not one.is_interrupted]
    # Known only in the sandbox of a trial.
    if versions := sorted({one.agent_version for one in ended if one.agent_version}):
        subject = {**subject, "version": ", ".join(versions)}
    by_task = trials_by_task(name, ended)
    mixed = [
        id for id, trials in by_task.items() if len({(one.conditions, one.scoring) for one in trials}) > 1
    ]
    runs = runs_of(name, ended)
    return Side(
        name=name,
        run=name,
        subject=subject,
        tasks={
            id: task_of(trials, name, list(runs)) for id, trials in sorted(by_task.items()) if id not in mixed
        },
        trials=len(ended),
        errors=dict(sorted(Counter(one.id for one in ended if one.is_error).items())),
        runs=runs,
        mixed=mixed,
    )


def runs_of(name: str, results: Iterable[TrialResult]) -> dict[str, str]:
    """The runs that ran the trials of a run, and when."""
    dates: dict[str, str] = {}
    for one in results:
        run = one.resumed_from or name
        dates[run] = max(dates.get(run, ""), date_of(one.started))
    return dict(sorted(dates.items()))


def date_of(time: str) -> str:
    try:
        return date.fromisoformat(time[:10]).isoformat()
    except ValueError:
        return ""


def task_of(trials: Sequence[TrialResult], name: str, runs: Sequence[str]) -> TaskTrials:
    """`runs` are the runs that ran the trials of the run `name`."""
    by_run = Counter(one.resumed_from or name for one in trials)
    first = trials[0]
    costs = [one.cost_usd for one in trials if one.cost_usd is not None]
    return TaskTrials(
        set=first.set,
        conditions=first.conditions,
        scoring=first.scoring,
        weight=first.weight,
        values=[one.headline_value or 0.0 for one in trials],
        of_runs=[by_run[run] for run in runs],
        repository=first.repository,
        replayed={
            one.epoch: one.headline_value or 0.0 for one in trials if one.recorded and not one.provided
        },
        stops=dict(sorted(Counter(one.stop_reason for one in trials).items())),
        causes=dict(sorted(Counter(one.cause for one in trials if one.cause).items())),
        cost_usd=fmean(costs) if costs else None,
        tokens=fmean(one.tokens for one in trials),
        seconds=fmean(one.wall_seconds - one.waited_seconds for one in trials),
    )


def summed(counts: Iterable[dict[str, int]]) -> Counter[str]:
    return sum(map(Counter, counts), Counter[str]())


class Digests(Protocol):
    """What must be equal where trials of a task are compared."""

    @property
    def conditions(self) -> str: ...
    @property
    def scoring(self) -> str: ...


def why_left_out(baseline: Side, candidate: Side) -> Iterator[tuple[str, list[str]]]:
    """The reasons, each with the tasks for which it is the first."""
    both = [id for id in candidate.tasks if id in baseline.tasks]
    pairs = {id: (baseline.tasks[id], candidate.tasks[id]) for id in both}
    different: dict[str, list[str]] = {}
    for id, (old, new) in pairs.items():
        different.setdefault(why_different(old, new), []).append(id)
    reasons = {
        "its conditions differ between trials of one side": sorted({*baseline.mixed, *candidate.mixed}),
        **only_in(baseline, candidate),
        **only_in(candidate, baseline),
        **different,
    }
    yield from ((reason, ids) for reason, ids in reasons.items() if reason and ids)


def only_in(one: Side, other: Side) -> dict[str, list[str]]:
    failed = only_errors(one, other)
    absent = one.tasks.keys() - other.tasks.keys() - {*other.mixed, *failed}
    return {f"all trials of {other.name} are errors": failed, f"only in {one.name}": sorted(absent)}


def only_errors(one: Side, other: Side) -> list[str]:
    """The tasks that one side has, and of which all trials of the other side are errors."""
    return sorted((one.tasks.keys() & other.errors.keys()) - other.tasks.keys() - {*other.mixed})


def why_different(old: Digests, new: Digests) -> str:
    """Why two trials of a task cannot be compared; "" if they can."""
    before, after = (set(one.conditions.split()) for one in (old, new))
    if names := sorted({part.partition("=")[0] for part in before ^ after}):
        return f"other conditions ({', '.join(names)})"
    return "" if old.scoring == new.scoring else "scored otherwise (answer, grader or metric)"
