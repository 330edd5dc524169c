"""Whether the answer of a task, or a sign of progress, stands where the agent reads before it has begun."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.authoring.verify.chance import MOST_CHANCE, Cluster, best_of_each, by_chance, clusters
from pytest_super.authoring.verify.finding import Finding
from pytest_super.authoring.verify.numbers import numbers_in
from pytest_super.authoring.verify.texts import Text, output_texts, prefix_texts
from pytest_super.authoring.verify.wanted import wanted_of
from pytest_super.errors import SuperError
from pytest_super.metrics.landmarks import LandmarkMatcher

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_super.authoring.verify.texts import Repositories
    from pytest_super.authoring.verify.wanted import Hit, Wanted
    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Task

# Texts that are told of each search.
MOST_TEXTS = 3


def leaks(task: Task, prefix: Sequence[Step], repositories: Repositories) -> Iterator[Finding]:
    """`prefix`: the pre-executed steps of a trial, or nothing where there was none."""
    wanted = wanted_of(task.answer)
    query = Text(place="the query", text=task.query)
    yield from stated(task, query, wanted)
    yield from found_in(task, list(prefix_texts(task, prefix)), wanted)
    yield from landmark_leaks(task, [query, *output_texts(prefix)])
    if task.repository is not None and (wanted.figures or wanted.words):
        yield from repository_leaks(task, wanted, repositories)


def repository_leaks(task: Task, wanted: Wanted, repositories: Repositories) -> Iterator[Finding]:
    try:
        texts = repositories.texts(task)
    except (SuperError, OSError) as error:
        text = f"{task.id}: its repository cannot be searched: {error}"
        yield Finding(kind="unknown", task=task.id, text=text, facts={"error": str(error)})
        return
    yield from found_in(task, [text for text in texts if text.is_prose], wanted)
    # Texts of an answer are quoted from data, as a rule: there only figures tell.
    yield from found_in(task, [text for text in texts if not text.is_prose], wanted.without_words())


def stated(task: Task, text: Text, wanted: Wanted) -> Iterator[Finding]:
    """What stands in a text that the author of the task wrote: nothing there is chance."""
    hits = [*wanted.numbers_among(numbers_in(text.text)), *wanted.words_in(text.text)]
    if hits:
        yield leak(task, text, best_of_each(hits), None)


def found_in(task: Task, texts: Sequence[Text], wanted: Wanted) -> Iterator[Finding]:
    """The most telling place of each text, of the most telling texts."""
    for text in texts:
        if words := wanted.words_in(text.text):
            yield leak(task, text, words, None)
    if wanted.figures:
        best: dict[str, tuple[float, Cluster]] = {}
        for chance, cluster in sorted(rated(texts, wanted), key=lambda pair: pair[0]):
            if chance < MOST_CHANCE:
                best.setdefault(cluster.text.place, (chance, cluster))
        for chance, cluster in list(best.values())[:MOST_TEXTS]:
            yield leak(task, cluster.text, cluster.hits, chance)


def rated(texts: Iterable[Text], wanted: Wanted) -> list[tuple[float, Cluster]]:
    """All places where numbers of the answer stand, each with how many of its like chance gives."""
    found: list[Cluster] = []
    different: set[float] = set()
    for text in texts:
        numbers = list(numbers_in(text.text))
        different.update(number.value for number in numbers)
        found += clusters(text, wanted.numbers_among(numbers), numbers)
    return [(by_chance(one, values=wanted.values, numbers=len(different)), one) for one in found]


def leak(task: Task, text: Text, hits: Sequence[Hit], chance: float | None) -> Finding:
    told = ", ".join(f"{hit.name} ({hit.value})" for hit in hits)
    line = text.text.count("\n", 0, min(hit.start for hit in hits)) + 1
    place = f"{text.place}, line {line}"
    return Finding(
        kind="leaks",
        task=task.id,
        text=f"{task.id}: {told} of the answer: {place}",
        facts={"values": [hit.name for hit in hits], "place": place, "by_chance": chance},
    )


def landmark_leaks(task: Task, texts: Iterable[Text]) -> Iterator[Finding]:
    for text in texts:
        matcher = LandmarkMatcher(task.landmarks)
        matcher.begin_cell("")
        matcher.feed(text.text)
        for index in matcher.end_cell():
            pattern = task.landmarks[index]
            told = f"{task.id}: the landmark {pattern!r} matches {text.place}"
            facts = {"landmark": pattern, "place": text.place}
            yield Finding(kind="leaks", task=task.id, text=told, facts=facts)
