"""Finds the answer of a task, or a match of a landmark, in a text that the agent reads at the start."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from pytest_super.authoring.verify.finding import Finding, finding
from pytest_super.authoring.verify.texts import Text, output_texts, prefix_texts
from pytest_super.errors import SuperError
from pytest_super.metrics.distinctive import NUMBER, Figure, Phrase, distinctive_values, numbers_in
from pytest_super.metrics.matching.landmark_matcher import LandmarkMatcher
from pytest_super.sources import fetch
from pytest_super.store.trajectory import Step
from pytest_super.tasks.task import Task

Values = Sequence[Figure | Phrase]
ReadTexts = Callable[[Path], Sequence[Text]]

QUOTED = re.compile(rf"{NUMBER.pattern}(?: ?%)?")
# Texts that are reported for each place where values are looked for.
MOST_TEXTS = 3


def leaks(task: Task, prefix: Sequence[Step], read_texts: ReadTexts) -> Iterator[Finding]:
    """`prefix` is the pre-executed steps of a trial; `read_texts` takes the folder of a repository."""
    values = list(distinctive_values(task.answer))
    query = Text(place="the query", text=task.query)
    yield from found_in(task, [query], values)
    yield from found_in(task, [*prefix_texts(task), *output_texts(prefix)], values)
    yield from landmark_leaks(task, [query, *output_texts(prefix)])
    if task.repository is not None and values:
        yield from repository_leaks(task, values, read_texts)


def repository_leaks(task: Task, values: Values, read_texts: ReadTexts) -> Iterator[Finding]:
    assert task.repository is not None
    try:
        texts = read_texts(fetch(task.repository, base=task.folder))
    except (SuperError, OSError) as error:
        text = f"its repository cannot be searched: {error}"
        yield finding("unknown", task.id, text, {"error": str(error)})
        return
    yield from found_in(task, texts, values)


def found_in(task: Task, texts: Iterable[Text], values: Values) -> Iterator[Finding]:
    """A finding for each of the texts that have the most values."""
    hits = [(text, places) for text in texts if (places := values_in(text, values))]
    for text, places in sorted(hits, key=lambda hit: -len(hit[1]))[:MOST_TEXTS]:
        yield leak(task, text, places)


def values_in(text: Text, values: Values) -> list[tuple[int, Figure | Phrase]]:
    sought = [value for value in values if is_sought(value, text)]
    has_figures = any(isinstance(value, Figure) for value in sought)
    numbers = list(numbers_in(text.text, text.least_digits)) if has_figures else []
    places = ((value.find(text.text, numbers), value) for value in sought)
    return [(start, value) for start, value in places if start is not None]


def is_sought(value: Figure | Phrase, text: Text) -> bool:
    if isinstance(value, Figure):
        return value.digits >= text.least_digits
    # Phrases of an answer are often quotations of data, so data that contains them is not a leak.
    return text.is_prose


def leak(task: Task, text: Text, places: Sequence[tuple[int, Figure | Phrase]]) -> Finding:
    line = text.text.count("\n", 0, min(start for start, _ in places)) + 1
    place = f"{text.place}, line {line}"
    named = ", ".join(f"{value.name} ({value.value})" for _, value in places)
    # Of a phrase the value itself is what is written.
    figures = [start for start, value in places if isinstance(value, Figure)]
    written = "".join(f", `{found[0]}`" for start in figures if (found := QUOTED.match(text.text, start)))
    facts = {"values": [value.name for _, value in places], "place": place}
    return finding("leaks", task.id, f"{named} of the answer: {place}{written}", facts)


def landmark_leaks(task: Task, texts: Iterable[Text]) -> Iterator[Finding]:
    for text in texts:
        matcher = LandmarkMatcher(task.landmarks)
        matcher.begin_cell("")
        matcher.feed(text.text)
        matcher.end_cell()
        for pattern in (landmark.pattern for landmark in matcher.landmarks if landmark.is_hit):
            facts = {"landmark": pattern, "place": text.place}
            yield finding("leaks", task.id, f"the landmark {pattern!r} matches {text.place}", facts)
