"""Finds what an agent with the network can fetch of its task's answer and solution.

A number of the answer is looked for in thousands of others, and counts if it is hardly there by chance.
The leading digits of two numbers agree in d digits by chance in one of 9 * 10^(d-1) pairs, and a number is
looked for in two forms. So among m different numbers it is expected m * p times, p = 2 / (9 * 10^(d-1)). It
counts where that is below MOST_EXPECTED: among all numbers, among those that the name of its field belongs
to, or, together with another value of the answer, among those that are near that one.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TypeAlias

from pytest_super.authoring.verify.finding import Finding, finding
from pytest_super.authoring.verify.leaks import ReadTexts
from pytest_super.authoring.verify.texts import SINCE, Text, prefix_texts
from pytest_super.errors import SuperError
from pytest_super.functions.leaks import long_lines
from pytest_super.metrics.distinctive import Figure, Number, Phrase, chance_of, distinctive_values, numbers_in
from pytest_super.sources import fetch
from pytest_super.tasks.solution import read_solution
from pytest_super.tasks.task import Repository, Task

ReadVersions: TypeAlias = "Callable[[Repository, Path], Sequence[Text]]"

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
    """Look for leaks in a task whose sandbox has the network, unless its repository is a folder."""
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
        text = f"other versions of its repository cannot be searched: {error}"
        yield finding("unknown", task.id, text, {"error": str(error)})
        return
    hits = [*value_hits(texts, values), *solution_hits(texts, lines)]
    hits.sort(key=lambda one: -len(one.what))
    # Many versions of a file have the same: the newest is enough.
    by_file = {hit.text.place.partition(SINCE)[0]: hit for hit in reversed(hits)}
    for hit in [hit for hit in hits if hit in by_file.values()][:MOST_TEXTS]:
        place = f"{hit.text.place}, line {hit.line}"
        text = f"with the network, the agent can fetch {', '.join(hit.what)}: {place}"
        yield finding("leaks", task.id, text, {"found": hit.what, "place": place})


def value_hits(texts: Sequence[Text], values: Sequence[Figure | Phrase]) -> Iterator[Hit]:
    figures = [one for one in values if isinstance(one, Figure) and one.digits >= LEAST_DIGITS]
    phrases = [one for one in values if isinstance(one, Phrase)]
    compared = numbers_compared(texts, figures)
    for text in texts:
        found = [
            (one.line + 1, f"{one.figure.name} ({one.figure.value})")
            for one in figures_in(text, figures, compared)
        ]
        # As in the pinned version, data that quotes the words of an answer is not a leak.
        for phrase in phrases if text.is_prose else ():
            if (start := phrase.find(text.text, ())) is not None:
                found.append((text.text.count("\n", 0, start) + 1, f"{phrase.name} ({phrase.value})"))
        if found:
            what = [f"{value} of the answer" for value in dict.fromkeys(value for _, value in found)]
            yield Hit(text=text, line=min(line for line, _ in found), what=what)


def solution_lines(task: Task, base: Path) -> frozenset[str]:
    """The solution's long lines that the task does not tell, without imports. Raises TaskFileError."""
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


MOST_EXPECTED = 0.05
# Significant digits that a number has at least. With fewer it is in every text.
LEAST_DIGITS = 4
# More different numbers are not counted: figures with fewer than eight digits are among them by chance.
MOST_NUMBERS = 250_000
# A field is named in the line of its number or in one of so many lines before, as a table's head is.
LINES_BEFORE = 2
# Values are near within so many lines.
LINES_BETWEEN = 3


@dataclass(kw_only=True)
class Compared:
    """The different numbers that figures are compared with."""

    all: set[float] = field(default_factory=set)
    named: Mapping[str, set[float]] = field(default_factory=lambda: defaultdict(set))
    """Those that the name of a figure's field belongs to."""

    @property
    def count(self) -> float:
        return len(self.all) if len(self.all) < MOST_NUMBERS else math.inf


@dataclass(frozen=True, kw_only=True)
class Found:
    """A number that agrees with a figure, in a line of the text, from 0."""

    figure: Figure
    number: Number
    line: int

    @property
    def chance(self) -> float:
        """That another number agrees."""
        return chance_of(self.figure.digits, self.number.digits)


class Lines:
    """A text by its lines, with its numbers, each with its line from 0."""

    def __init__(self, text: Text) -> None:
        lines = text.text.split("\n")
        starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
        found = numbers_in(text.text, LEAST_DIGITS)
        self.numbers = [(number, bisect(starts, number.start) - 1) for number in found]
        self._lines = [line.lower() for line in lines] if self.numbers else []

    def naming(self, figure: Figure) -> set[int]:
        """The lines whose numbers the name of the figure's field belongs to."""
        patterns = [re.compile(rf"(?<![a-z]){word}(?![a-z0-9])") for word in words_of(figure.name)]
        naming = set()
        for line in {line for _, line in self.numbers} if patterns else ():
            before = "\n".join(self._lines[max(0, line - LINES_BEFORE) : line + 1])
            if all(pattern.search(before) for pattern in patterns):
                naming.add(line)
        return naming


def words_of(name: str) -> list[str]:
    """The words of the last part of a place in the answer; none of a letter, or of the answer as a whole."""
    last = re.sub(r"\[.*?\]", "", name).rpartition(".")[2].lower()
    words = re.findall(r"[a-z]+\d*", last)
    return words if " " not in last and all(len(word) > 1 for word in words) else []


def numbers_compared(texts: Iterable[Text], figures: Sequence[Figure]) -> Compared:
    compared = Compared()
    for text in texts:
        lines = Lines(text)
        if len(compared.all) < MOST_NUMBERS:
            compared.all.update(number.value for number, _ in lines.numbers)
        for figure in figures:
            if naming := lines.naming(figure):
                own = (number.value for number, line in lines.numbers if line in naming)
                compared.named[figure.name].update(own)
    return compared


def figures_in(text: Text, figures: Sequence[Figure], compared: Compared) -> Iterator[Found]:
    """The numbers of a text that agree with a figure, hardly by chance."""
    lines = Lines(text)
    found = [
        Found(figure=figure, number=number, line=line)
        for figure in figures
        for number, line in lines.numbers
        if figure.is_given_by(number)
    ]
    for one in found:
        is_near = (are_near(one, other, lines, compared) for other in found)
        # Hardly any of all numbers agrees by chance.
        is_alone = one.chance * compared.count < MOST_EXPECTED
        if is_alone or is_named(one, lines, compared) or any(is_near):
            yield one


def is_named(one: Found, lines: Lines, compared: Compared) -> bool:
    named = compared.named.get(one.figure.name, ())
    return one.chance * len(named) < MOST_EXPECTED and one.line in lines.naming(one.figure)


def are_near(one: Found, other: Found, lines: Lines, compared: Compared) -> bool:
    """Whether two numbers are near each other and agree with two figures."""
    if one.figure is other.figure or one.number is other.number or abs(one.line - other.line) > LINES_BETWEEN:
        return False
    near = {number.value for number, line in lines.numbers if abs(line - other.line) <= LINES_BETWEEN}
    return other.chance * compared.count * one.chance * len(near) < MOST_EXPECTED
