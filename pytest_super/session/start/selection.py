"""Selects, orders and lists the collected tasks, with hints when options select unexpected ones."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice, zip_longest

import pytest

from pytest_super.option_types import Sample
from pytest_super.session.run import RUN
from pytest_super.session.settings import Settings
from pytest_super.session.trial.item import TaskItem
from pytest_super.tasks.paper_item import PaperItem
from pytest_super.tasks.task import Task
from pytest_super.trial.budget import budget_for
from pytest_super.words import counted, did_you_mean, named, printable

# So many papers are named in a hint.
MOST_NAMED = 5
PAST_GATEWAY = "{tasks} with a network: an agent can ask a model past the gateway, and no record has that"


def deselect(items: list[pytest.Item], config: pytest.Config, collected: Iterable[Task]) -> None:
    """Keep the tasks that the options ask for, and all items that are not tasks."""
    settings = config.stash[RUN].settings
    tasks = [item for item in items if isinstance(item, TaskItem)]
    wanted = {item.task.id for item in tasks if is_wanted(item.task, settings)}
    if settings.sample is not None:
        wanted = drawn((task for task in collected if task.id in wanted), settings.sample)
    drop(items, config, [item for item in tasks if item.task.id not in wanted])


def drop(items: list[pytest.Item], config: pytest.Config, dropped: Collection[pytest.Item]) -> None:
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        gone = set(dropped)
        items[:] = [item for item in items if item not in gone]


def is_wanted(task: Task, settings: Settings) -> bool:
    chosen = ((task.set, settings.sets), (task.category, settings.categories), (task.split, settings.splits))
    return all(not names or own in names for own, names in chosen)


def drawn(tasks: Iterable[Task], sample: Sample) -> set[str]:
    """The ids of the sample: as many from each set, and from each paper and n, as there are.

    A larger sample of the same tasks contains a smaller one. It does not depend on the order of the files.
    """
    groups: dict[tuple[str, int], dict[str, None]] = {}
    for task in sorted(tasks, key=partial(place_in_sample, seed=sample.seed)):
        groups.setdefault(group_of(task), {})[task.id] = None
    turns = chain.from_iterable(zip_longest(*(groups[key] for key in sorted(groups))))
    return set(islice(filter(None, turns), sample.size))


def group_of(task: Task) -> tuple[str, int]:
    return (task.whole.id, len(task.functions)) if isinstance(task, PaperItem) else (str(task.set), 0)


def place_in_sample(task: Task, seed: int) -> float:
    # Items of papers are drawn before they are made, and collected in the order of that sample.
    return 0.0 if isinstance(task, PaperItem) else random.Random(f"{seed} {task.id}").random()


def order_for_workers(items: list[pytest.Item], expected: dict[str, float], workers: int) -> None:
    """Order the tasks: a long and a short one for each worker, then the others, the longest first.

    Other items stay in their places. xdist begins with two items for each worker, so one with two long tasks
    would end last. Measured, longest-first is worse than a random order.
    """

    def rank(item: TaskItem) -> tuple[float, str]:
        # Equal durations by id, because xdist requires the same order from every worker.
        return -expected.get(item.task.id, item.task.limits.compute), item.nodeid

    reorder(items, lambda tasks: long_with_short(sorted(tasks, key=rank), workers))


def keep_epochs(items: list[pytest.Item], most: Mapping[str, int], config: pytest.Config) -> None:
    """Drop the epochs of each task beyond its most, and order the tasks by epoch."""
    tasks = (item for item in items if isinstance(item, TaskItem))
    drop(items, config, [item for item in tasks if item.epoch > most[item.task.id]])
    reorder(items, lambda tasks: sorted(tasks, key=lambda item: item.epoch))


def reorder(items: list[pytest.Item], order: Callable[[Sequence[TaskItem]], Iterable[TaskItem]]) -> None:
    """Order the tasks, and leave other items in their places."""
    tasks = {place: item for place, item in enumerate(items) if isinstance(item, TaskItem)}
    for place, item in zip(tasks, order(list(tasks.values())), strict=True):
        items[place] = item


def long_with_short(ranked: Sequence[TaskItem], workers: int) -> Iterator[TaskItem]:
    """`ranked` has the longest first."""
    pairs = min(workers, len(ranked) // 2)
    for place in range(pairs):
        yield from (ranked[place], ranked[-1 - place])
    yield from ranked[pairs : len(ranked) - pairs]


def collected_lines(config: pytest.Config, items: list[TaskItem]) -> list[str]:
    lines = list(keyword_hints(config.option.keyword, [item.task.category for item in items]))
    if config.option.collectonly and config.option.verbose >= 0:
        lines += table(items)
    return lines


def selection_hints(
    settings: Settings, stated: Sequence[Task], tasks: Iterable[Task], left: Collection[pytest.Item]
) -> list[str]:
    """Hints when an option names what no task has, or when less is left than asked for.

    `stated` are the tasks of the collected files, `tasks` those of all items, `left` the items that are left.
    """
    by_id = {task.id: task for task in tasks}
    categories = {task.category for task in stated if task.category}
    sets = {str(task.set) for task in stated}
    splits = {task.split for task in stated if task.split}
    hints = [
        f"--super-{option}={name} selects no task: the {plural} here are {listed(known)}"
        f"{did_you_mean(name, known)}"
        for option, plural, names, known in (
            ("category", "categories", settings.categories, categories),
            ("set", "sets", settings.sets, sets),
            ("split", "splits", settings.splits, splits),
        )
        for name in names
        if name not in known
    ]
    hints += size_hints(settings, [task for task in stated if task.functions], by_id.values())
    tasks_left = {item.task.id: item.task for item in left if isinstance(item, TaskItem)}
    chosen = tasks_left.keys()
    if settings.sample is not None and 0 < len(chosen) < settings.sample.size:
        there = counted(len(chosen), "task")
        hints.append(f"--super-sample={settings.sample.size} is more than there is: it takes all of {there}")
    if by_id and not left and not hints:
        there = f"their sets are {listed(sets)}; their categories are {listed(categories)}"
        hints.append(f"none of the {counted(len(by_id), 'task')} here is selected: {there}")
    if settings.answers and (open_tasks := sum(bool(one.sandbox.network) for one in tasks_left.values())):
        hints.append(PAST_GATEWAY.format(tasks=counted(open_tasks, "task")))
    return [printable(hint) for hint in hints]


def size_hints(settings: Settings, papers: Sequence[Task], tasks: Iterable[Task]) -> Iterator[str]:
    """A hint for each n that no item has."""
    there = {len(task.functions) for task in tasks}
    counts = [f"{paper.id} has {counted(len(paper.functions), 'function')}" for paper in papers]
    for n in settings.sizes or ():
        if papers and n not in there:
            yield f"--super-n={n} selects no task: {named(counts, MOST_NAMED)}"


def listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def keyword_hints(expression: str, selected: Sequence[str | None]) -> Iterator[str]:
    """Hints when a word of -k is a category but also selects other tasks; `selected` has their categories."""
    for word in sorted(set(re.findall(r"[\w-]+", expression)) & set(filter(None, selected))):
        others = sum(category != word for category in selected)
        if others:
            exact = f"--super-category={word} is exact"
            yield f"-k {word} also selects {counted(others, 'task')} outside the category: {exact}"


def table(items: Iterable[TaskItem]) -> Iterator[str]:
    yield f"{'task':<40} {'set':<10} {'category':<14} {'compute':>8} {'cell':>7} {'tokens':>9}"
    for item in items:
        task = item.task
        limits = f"{task.limits.compute:>7g}s {task.limits.cell:>6g}s {budget_for(task).token_limit:>9,}"
        yield f"{item.name:<40} {task.set:<10} {task.category or '-':<14} {limits}"
