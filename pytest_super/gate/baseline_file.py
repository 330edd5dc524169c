"""The baseline: a small JSON file with a run's trials, one line a task, so that it diffs well in git."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, replace
from datetime import date
from pathlib import Path
from typing import Any

from pytest_super.digests import digest
from pytest_super.errors import SuperError
from pytest_super.gate.side import Side, TaskTrials, date_of, side_of_run, summed, why_different
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import UNREADABLE, damage, disk_errors, read_json

FORMAT = 2
# Digits of means that nobody decides by, so that a file changes only where something did.
DIGITS = 4
# In so many days a provider can have replaced the model behind a name.
MOST_DAYS = 90
# One that is larger hides what a comparison asks for: even with endless trials of the candidate an unchanged
# agent passes in 95 % of runs only while the standard error of the baseline is below margin / 3.3.
MOST_OF_MARGIN = 0.3


def write_baseline(path: Path, side: Side) -> None:
    """Raises InfrastructureError if the disk refuses."""
    head = {
        "format": FORMAT,
        "run": side.run,
        "runs": side.runs,
        "trials": side.trials,
        "errors": side.errors,
        "subject": side.subject,
    }
    tasks = ",\n".join(
        f"  {json.dumps(id)}: {json.dumps(data_of(task))}" for id, task in sorted(side.tasks.items())
    )
    before = json.dumps(head, indent=1, sort_keys=True).removesuffix("\n}")
    with disk_errors(path):
        write_atomically(path, f'{before},\n "tasks": {{\n{tasks}\n }}\n}}\n')


def data_of(task: TaskTrials) -> dict[str, Any]:
    return {
        name: round(value, DIGITS) if isinstance(value, float) and name != "weight" else value
        for name, value in asdict(task).items()
        if name != "replayed"
    }


def read_side(path: Path) -> Side:
    """A baseline, or a run's folder. Raises SuperError."""
    return side_of_run(path) if path.is_dir() else read_baseline(path)


def read_baseline(path: Path) -> Side:
    """Raises SuperError."""
    try:
        data = read_json(path)
        if data["format"] != FORMAT:
            raise SuperError(f"{path}: its format is {data['format']}, not {FORMAT}: make it anew")
        return Side(
            name=path.name,
            run=str(data["run"]),
            subject=dict(data["subject"]),
            tasks={str(id): task_from(task) for id, task in data["tasks"].items()},
            trials=int(data["trials"]),
            errors={str(id): int(errors) for id, errors in data["errors"].items()},
            runs={str(run): date_of(day) for run, day in data.get("runs", {}).items()},
        )
    except FileNotFoundError:
        raise SuperError(
            f"there is no baseline {path}: make it with `pytest-super baseline update`"
        ) from None
    except UNREADABLE as error:
        raise SuperError(f"{path} is no baseline: {damage(error)}") from None


def task_from(data: dict[str, Any]) -> TaskTrials:
    """Raises TypeError, ValueError and KeyError."""
    known = {field.name for field in fields(TaskTrials)}
    return TaskTrials(**{name: value for name, value in data.items() if name in known})


def with_run(side: Side, added: Side) -> tuple[Side, dict[str, list[str]]]:
    """The baseline with the trials of a further run, and the tasks whose trials were left out, by the reason.

    Raises SuperError if the run tries something else, or has no further trial that can be added.
    """
    if not added.trials:
        raise SuperError(f"all trials of {added.name} are in {side.name} already: nothing is added")
    refuse_another_subject(side, added)
    out: dict[str, list[str]] = {}
    for id in added.tasks.keys() & side.tasks.keys():
        if why := why_different(side.tasks[id], added.tasks[id]):
            out.setdefault(why, []).append(id)
    tasks = {id: task for id, task in added.tasks.items() if not any(id in ids for ids in out.values())}
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
    ), {reason: sorted(ids) for reason, ids in out.items()}


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
        replayed={},
        stops=dict(summed(one.stops for one, _ in parts)),
        causes=dict(summed(one.causes for one, _ in parts)),
        cost_usd=sum(cost * n for cost, n in costs) / sum(n for _, n in costs) if costs else None,
        tokens=sum(one.tokens * len(one.values) for one, _ in parts) / number,
        seconds=sum(one.seconds * len(one.values) for one, _ in parts) / number,
    )


def why_renew(side: Side, margin: float, today: date) -> Iterator[str]:
    """The reasons to renew the baseline, each with what to do."""
    # Not at the top: a worker reads the file without scipy.
    from pytest_super.gate.planning import standard_error
    from pytest_super.gate.samples import sample_of

    for name in sorted({task.set for task in side.tasks.values()}):
        own = [task for task in side.tasks.values() if task.set == name]
        error = standard_error(sample_of([task.values for task in own], [task.weight for task in own]))
        if error > MOST_OF_MARGIN * margin:
            yield (
                f"{name}: the standard error of {side.name} is {100 * error:.1f} points, more than "
                f"{100 * MOST_OF_MARGIN:.0f} % of the drop to rule out: add runs (baseline update --add RUN)"
            )
    age = side.age(today)
    if age is not None and age > MOST_DAYS:
        yield (
            f"{side.name} is {age} days old, more than {MOST_DAYS}: a model can change behind its name: "
            "write it anew, from a run of today (baseline update RUN)"
        )
