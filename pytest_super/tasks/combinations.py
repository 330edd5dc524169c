"""The items of a paper: its functions, masked in combinations of n."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain, combinations
from math import comb
from typing import TypeAlias

from pytest_super.errors import SuperError
from pytest_super.functions.source import may_overlap
from pytest_super.tasks.grade import Grade
from pytest_super.tasks.paper import Experiment, files_of, graded_commands, numbered
from pytest_super.tasks.paper_item import PaperItem, whole_item
from pytest_super.tasks.task import Task
from pytest_super.words import did_you_mean

Places: TypeAlias = tuple[int, ...]
"""Positions of functions in their paper, ascending."""

MOST_ITEMS = 100_000
"""Of one paper and one n, without a sample."""
# So many combinations are all made and put in a random order; of more, random ones are drawn.
MOST_SHUFFLED = 10_000


def function_ids(paper: Task) -> list[str]:
    return [one.id or str(place) for place, one in enumerate(paper.functions)]


def overlapping_places(paper: Task) -> frozenset[tuple[int, int]]:
    """Pairs of functions of which one contains the other, as far as their names tell."""
    pairs = combinations(enumerate(paper.functions), 2)
    return frozenset((i, j) for (i, one), (j, other) in pairs if may_overlap(one.target, other.target))


def graded_places(paper: Task) -> frozenset[int]:
    """The functions that an experiment needs."""
    ids = function_ids(paper)
    needed = {name for one in paper.experiments for name in one.functions or ids}
    return frozenset(place for place, name in enumerate(ids) if name in needed)


def is_item(paper: Task) -> Callable[[Places], bool]:
    """Tells combinations whose functions do not overlap, and of which an experiment needs at least one."""
    overlapping, graded = overlapping_places(paper), graded_places(paper)
    return lambda places: overlapping.isdisjoint(combinations(places, 2)) and not graded.isdisjoint(places)


def all_places(paper: Task, n: int) -> Iterator[Places]:
    """Every combination of n functions that can be masked together. Raises SuperError if too many."""
    if (count := comb(len(paper.functions), n)) > MOST_ITEMS:
        raise SuperError(
            f"{paper.id} has {count:,} combinations of {n} functions, more than {MOST_ITEMS:,}: "
            "take a sample of them with --super-sample"
        )
    yield from filter(is_item(paper), combinations(range(len(paper.functions)), n))


def sampled_places(paper: Task, n: int, size: int, seed: int) -> Iterator[Places]:
    """Draw up to `size` different combinations at random; a larger size only continues them."""
    count = len(paper.functions)
    order, is_item_of = random.Random(f"{seed} {paper.id} {n}"), is_item(paper)
    if comb(count, n) <= MOST_SHUFFLED:
        made = list(filter(is_item_of, combinations(range(count), n)))
        order.shuffle(made)
        yield from made[:size]
        return
    seen: set[Places] = set()
    # Most draws are new; the bound is for functions of which hardly any can be masked together.
    for _ in range(100 * size):
        places = tuple(sorted(order.sample(range(count), n)))
        if places not in seen and is_item_of(places):
            seen.add(places)
            yield places
        if len(seen) == size:
            return


def item_id(paper: Task, places: Places) -> str:
    ids = function_ids(paper)
    return f"{paper.id}_{','.join(ids[place] for place in places)}"


def places_in(paper: Task, name: str) -> Places:
    """The functions that the id of an item names, in any order. Raises SuperError."""
    ids = function_ids(paper)
    named = name.removeprefix(f"{paper.id}_").split(",")
    if unknown := [one for one in named if one not in ids]:
        hint = did_you_mean(unknown[0], ids) or f": it has {', '.join(ids[:50])}"
        raise SuperError(f"{name}: {paper.id} has no function `{unknown[0]}`{hint}")
    if repeated := [one for one, count in Counter(named).items() if count > 1]:
        raise SuperError(f"{name}: the function `{repeated[0]}` is named twice")
    places = tuple(sorted(map(ids.index, named)))
    if pair := next((pair for pair in overlapping_places(paper) if set(pair) <= set(places)), None):
        one, other = (f"`{paper.functions[place].target}`" for place in pair)
        raise SuperError(f"{name}: {one} and {other} overlap")
    if graded_places(paper).isdisjoint(places):
        raise SuperError(f"{name}: no experiment needs these functions, so nothing would grade them")
    return places


def items_named(tasks: Iterable[Task], names: Iterable[str]) -> dict[str, PaperItem]:
    """The items of papers among `tasks` with these ids; other names are left out."""
    papers = [task for task in tasks if task.functions]
    found = {}
    for name in names:
        for paper in papers:
            if name.startswith(f"{paper.id}_"):
                with suppress(SuperError):
                    found[name] = Items(paper).item(places_in(paper, name))
    return found


class Items:
    """Makes the items of a paper; what several of them have in common is made once."""

    def __init__(self, paper: Task) -> None:
        self._all = whole_item(paper)
        self._ids = function_ids(paper)
        needs = [one.functions or self._ids for one in paper.experiments]
        self._experiments = {
            place: [index for index, needed in enumerate(needs) if name in needed]
            for place, name in enumerate(self._ids)
        }
        self._graders: dict[frozenset[int], tuple[list[Experiment], Grade]] = {}

    def item(self, places: Places) -> PaperItem:
        paper = self._all
        functions = [paper.functions[place] for place in places]
        experiments, grade = self._grader(places)
        # Only the files with masked functions come out of the agent's sandbox.
        grade = grade.model_copy(update={"collect": files_of(functions)})
        id = f"{paper.id}_{','.join(self._ids[place] for place in places)}"
        return paper.model_copy(
            update={"id": id, "functions": functions, "experiments": experiments, "grade": grade}
        )

    def _grader(self, places: Places) -> tuple[list[Experiment], Grade]:
        """The experiments that need the functions, and a grader that runs them."""
        needed = frozenset(chain.from_iterable(self._experiments[place] for place in places))
        if needed not in self._graders:
            experiments = numbered(self._all.experiments[index] for index in sorted(needed))
            grade = Grade(
                collect="all",
                command=experiments[0].command,
                result=experiments[0].result,
                aggregate=self._all.aggregate,
            )
            grade._experiments = graded_commands(experiments)
            self._graders[needed] = experiments, grade
        return self._graders[needed]
