"""A baseline over time: further runs of the same subject, drift between them, and when to renew it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date

from pytest_super.digests import digest
from pytest_super.errors import SuperError
from pytest_super.gate.comparison.side import Side, TaskTrials, summed
from pytest_super.gate.statistics.baseline import DRIFT, MOST_OF_MARGIN, chance_of_no_drift, standard_error
from pytest_super.gate.statistics.difference import difference
from pytest_super.gate.statistics.samples import Pair

# In so many days a provider can have replaced the model behind a name.
MOST_DAYS = 90


@dataclass(frozen=True, kw_only=True)
class Drift:
    """One run of a baseline differs from its others."""

    run: str
    set: str
    difference: float
    """Of the means of the tasks that both have, from -1 to 1."""
    chance: float
    """How likely one so large is without drift, with regard to the number of runs and sets."""

    @property
    def words(self) -> str:
        return (
            f"{self.set}: the run {self.run} differs from the others by {100 * self.difference:+.1f} points "
            f"(p = {self.chance:.2g}): something behind the same names has changed: "
            "write a new baseline from a run of today (baseline update RUN)"
        )


def with_run(side: Side, added: Side) -> tuple[Side, dict[str, list[str]]]:
    """The baseline with the trials of a further run, and the tasks whose trials were left out, by the reason.

    Raises SuperError if the run tries something else, or has no further trial that can be added.
    """
    if not added.trials:
        raise SuperError(f"all trials of {added.name} are in {side.name} already: nothing is added")
    refuse_another_subject(side, added)
    both = [id for id in added.tasks if id in side.tasks]
    pairs = {id: (side.tasks[id], added.tasks[id]) for id in both}
    around = [id for id, (old, new) in pairs.items() if old.conditions != new.conditions]
    scored = [id for id, (old, new) in pairs.items() if id not in around and old.scoring != new.scoring]
    out = {"other conditions": around, "scored otherwise": scored}
    tasks = {id: task for id, task in added.tasks.items() if id not in {*around, *scored}}
    if not tasks:
        raise SuperError(f"no task of {added.name} has the conditions and the scoring of {side.name}")
    runs = {**(side.runs or {side.run: ""}), **added.runs}
    return replace(
        side,
        tasks={
            id: joined(side, side.tasks.get(id), added, tasks.get(id), runs)
            for id in sorted(side.tasks.keys() | tasks.keys())
        },
        trials=side.trials + added.trials,
        errors=dict(sorted((Counter(side.errors) + Counter(added.errors)).items())),
        runs=runs,
    ), {reason: ids for reason, ids in out.items() if ids}


def refuse_another_subject(side: Side, added: Side) -> None:
    """Raises SuperError, which names what differs."""
    names = sorted(side.subject.keys() | added.subject.keys())
    differ = [name for name in names if digest(side.subject.get(name)) != digest(added.subject.get(name))]
    if differ:
        raise SuperError(
            f"{added.name} tries something else than {side.name}: its {', '.join(differ)} differ: "
            "write a new baseline without --add"
        )


def joined(
    side: Side, old: TaskTrials | None, added: Side, new: TaskTrials | None, runs: Mapping[str, str]
) -> TaskTrials:
    """The trials of both, of which at most one is None. `runs` are those of both sides."""
    parts = [(one, of) for one, of in ((old, side), (new, added)) if one is not None]
    first, number = parts[0][0], sum(len(one.values) for one, _ in parts)
    costs = [(one.cost_usd, len(one.values)) for one, _ in parts if one.cost_usd is not None]
    by_run: Counter[str] = Counter()
    for one, of in parts:
        by_run.update(dict(zip(of.runs or [of.run], one.by_run, strict=False)))
    return replace(
        first,
        values=[value for one, _ in parts for value in one.values],
        of_runs=[by_run[run] for run in runs],
        epochs=[],
        stops=dict(summed(one.stops for one, _ in parts)),
        causes=dict(summed(one.causes for one, _ in parts)),
        cost_usd=sum(cost * n for cost, n in costs) / sum(n for _, n in costs) if costs else None,
        tokens=sum(one.tokens * len(one.values) for one, _ in parts) / number,
        seconds=sum(one.seconds * len(one.values) for one, _ in parts) / number,
    )


def drift_of(side: Side) -> Drift | None:
    """The run that differs most from the others, by a test stratified by task; None if chance explains it."""
    found = list(differences(side))
    worst = min(found, key=lambda one: one.chance, default=None)
    # By Bonferroni.
    if worst is None or worst.chance * len(found) > DRIFT:
        return None
    return replace(worst, chance=worst.chance * len(found))


def differences(side: Side) -> Iterator[Drift]:
    """Compare each run with the others, by set; of two runs only the newer one."""
    for place, run in list(enumerate(side.runs))[0 if len(side.runs) > 2 else 1 :]:
        pairs: dict[str, list[Pair]] = {}
        for task in side.tasks.values():
            own, others = split(task, place)
            if own and others:
                pairs.setdefault(task.set, []).append(
                    Pair(baseline=others, candidate=own, weight=task.weight)
                )
        for name, of_set in pairs.items():
            found = difference(of_set)
            yield Drift(run=run, set=name, difference=found.value, chance=chance_of_no_drift(found))


def split(task: TaskTrials, place: int) -> tuple[list[float], list[float]]:
    """The values of one run, and those of the others."""
    start = sum(task.by_run[:place])
    end = sum(task.by_run[: place + 1])
    return task.values[start:end], task.values[:start] + task.values[end:]


def age_of(side: Side, today: date) -> int | None:
    """How many days ago the newest trial ran; None if that is not known."""
    known = [one for one in side.runs.values() if one]
    return max((today - date.fromisoformat(max(known))).days, 0) if known else None


def why_renew(side: Side, margin: float, today: date) -> Iterator[str]:
    """The reasons to renew the baseline, each with what to do."""
    for name in sorted({task.set for task in side.tasks.values()}):
        own = [task for task in side.tasks.values() if task.set == name]
        error = standard_error([task.values for task in own], [task.weight for task in own])
        if error > MOST_OF_MARGIN * margin:
            yield (
                f"{name}: the standard error of {side.name} is {100 * error:.1f} points, more than "
                f"{100 * MOST_OF_MARGIN:.0f} % of the drop to rule out: add runs (baseline update --add RUN)"
            )
    if (drift := drift_of(side)) is not None:
        yield drift.words
    age = age_of(side, today)
    if age is not None and age > MOST_DAYS:
        yield (
            f"{side.name} is {age} days old, more than {MOST_DAYS}: a model can change behind its name: "
            "add a run of today, which is tested for drift (baseline update --add RUN)"
        )
