"""Finds what an agent with the network can fetch of its task's answer and solution."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.authoring.verify.coincidence import LEAST_DIGITS, figures_in, numbers_compared
from pytest_super.authoring.verify.finding import Finding
from pytest_super.authoring.verify.leaks import ReadTexts
from pytest_super.authoring.verify.texts import Text, prefix_texts
from pytest_super.authoring.verify.versions import SINCE
from pytest_super.errors import SuperError
from pytest_super.functions.leaks import long_lines
from pytest_super.metrics.distinctive import Figure, Phrase, distinctive_values
from pytest_super.sources import fetch
from pytest_super.tasks.solution import read_solution

if TYPE_CHECKING:
    from pytest_super.tasks.task import Repository, Task


ReadVersions = Callable[["Repository", Path], Sequence[Text]]

# A text has the solution if it has this portion of its lines, and so many of them.
PORTION, FEWEST_LINES = 0.5, 3
# Texts that are reported for a task.
MOST_TEXTS = 3
IMPORT = re.compile(r"(import|from) ")


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A text that gives a part of the answer or of the solution away."""

    text: Text
    line: int
    what: list[str]


def network_leaks(task: Task, read_texts: ReadTexts, read_versions: ReadVersions) -> Iterator[Finding]:
    """Look for leaks in a task whose sandbox has the network.

    `read_texts` takes the folder of a pinned repository; `read_versions` a repository and the task's folder.
    """
    if not task.sandbox.network or task.repository is None or task.repository.path is not None:
        return
    base = task.folder
    values = list(distinctive_values(task.answer))
    try:
        lines = solution_lines(task, base)
        if not values and not lines:
            return
        texts = read_versions(task.repository, base)
        if lines:
            pinned = read_texts(fetch(task.repository, base=base))
            lines -= {line for text in pinned for line in long_lines(text.text)}
    except (SuperError, OSError) as error:
        text = f"{task.id}: other versions of its repository cannot be searched: {error}"
        yield Finding(kind="unknown", task=task.id, text=text, facts={"error": str(error)})
        return
    hits = [*value_hits(texts, values), *solution_hits(texts, lines)]
    hits.sort(key=lambda one: -len(one.what))
    # Many versions of a file have the same: the newest is enough.
    by_file = {hit.text.place.partition(SINCE)[0]: hit for hit in reversed(hits)}
    for hit in [hit for hit in hits if hit in by_file.values()][:MOST_TEXTS]:
        yield finding_of(task, hit)


def finding_of(task: Task, hit: Hit) -> Finding:
    place = f"{hit.text.place}, line {hit.line}"
    return Finding(
        kind="leaks",
        task=task.id,
        text=f"{task.id}: with the network, the agent can fetch {', '.join(hit.what)}: {place}",
        facts={"found": hit.what, "place": place},
    )


def value_hits(texts: Sequence[Text], values: Sequence[Figure | Phrase]) -> Iterator[Hit]:
    figures = [one for one in values if isinstance(one, Figure) and one.digits >= LEAST_DIGITS]
    phrases = [one for one in values if isinstance(one, Phrase)]
    compared = numbers_compared(texts, figures)
    for text in texts:
        found = [
            (one.line + 1, f"{one.figure.name} ({one.figure.value})")
            for one in figures_in(text, figures, compared)
        ]
        found += phrases_in(text, phrases)
        if found:
            what = [f"{value} of the answer" for value in dict.fromkeys(value for _, value in found)]
            yield Hit(text=text, line=min(line for line, _ in found), what=what)


def phrases_in(text: Text, phrases: Sequence[Phrase]) -> Iterator[tuple[int, str]]:
    """As in the pinned version: data that quotes the words of an answer is not a leak."""
    for phrase in phrases if text.is_prose else ():
        if (start := phrase.find(text.text, ())) is not None:
            yield text.text.count("\n", 0, start) + 1, f"{phrase.name} ({phrase.value})"


def solution_lines(task: Task, base: Path) -> frozenset[str]:
    """The long lines of the solution's cells that the task itself does not tell. Raises TaskFileError.

    Imports are left out: they are in many programs.
    """
    if task.solution is None:
        return frozenset()
    told = [task.query, *(text.text for text in prefix_texts(task))]
    known = {line for text in told for line in long_lines(text)}
    own = {line for cell in read_solution(task.solution, base).cells for line in long_lines(cell)}
    return frozenset(line for line in own - known if not IMPORT.match(line))


def solution_hits(texts: Sequence[Text], solution: frozenset[str]) -> Iterator[Hit]:
    fewest = max(FEWEST_LINES, PORTION * len(solution))
    if len(solution) < FEWEST_LINES:
        return
    for text in texts:
        common = solution.intersection(long_lines(text.text))
        if len(common) >= fewest:
            lines = enumerate(text.text.split("\n"), 1)
            first = next((number for number, line in lines if common.intersection(long_lines(line))), 1)
            yield Hit(text=text, line=first, what=[f"{len(common)} of {len(solution)} lines of the solution"])
