"""Blocks of a solution that make sub-problems: found by the tags of its cells, else by what is in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_super.masking.dataflow import depends
from pytest_super.masking.files import ANY, holds_code
from pytest_super.masking.flow import effects_of
from pytest_super.tasks.task import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pytest_super.masking.cells import SolutionCell
    from pytest_super.masking.effects import Effects

TAG = re.compile(rf"(?:{'|'.join(CATEGORIES)})(?:[-_:].+)?")

IMPORT = re.compile(r"^\s*(?:import|from)\s.*$", re.MULTILINE)
DEVICE = re.compile(r"cuda|cupy|\bgpus?\b|\bdevice\b|map_location|no_cuda", re.IGNORECASE)
SETTING = re.compile(
    r"argparse|hyper.?param|config|epochs?\b|batch.?size|learning.?rate|\blr\b|\bseed\b|max_iter|num_|n_iter"
    r"|range\(\d+\)",
    re.IGNORECASE,
)
FETCHING = re.compile(
    r"\bwget\b|\bcurl\b|\bgdown\b|load_dataset|\bfetch_\w+\(|\bload_\w+\(|read_(?:csv|json|parquet|table)|\bunzip\b"
    r"|\btar\s|data.?set|genfromtxt|loadtxt",
    re.IGNORECASE,
)
TROUBLE = re.compile(
    r"\bissue|\bfix|\bbug|\berrors?\b|\bfail|incompatib|deprecat|removed in|\bgone\b|no longer"
    r"|has no|took .* away",
    re.IGNORECASE,
)
REPLACING = re.compile(r"\bsed -i|\.replace\(|re\.sub\(|\breplace\(")
CONFIGURATION_FILE = re.compile(r"\.(?:ya?ml|json|cfg|ini|toml|sh)$")


@dataclass(frozen=True, kw_only=True)
class Block:
    """Cells that deal with one thing, by index, and what speaks for it."""

    name: str
    """Of the sub-problem, behind that of the task; in most cases the category."""
    category: str
    cells: tuple[int, ...]
    reasons: tuple[str, ...]
    """One for each cell."""


def propose(cells: Sequence[SolutionCell], answer: int) -> list[Block]:
    """The blocks that are seen in a solution, in the order of the categories.

    `answer` is the index of the cell with the answer, which is the goal and in no block. Where any cell has
    the tag of a category, alone or with a name behind it (`data-labels`), only tags count.
    """
    before = cells[:answer]
    blocks = list(tagged(before)) or list(recognised(before, effects_of(cell.source for cell in cells)))
    return sorted(blocks, key=lambda block: CATEGORIES.index(block.category))


def tagged(cells: Sequence[SolutionCell]) -> Iterator[Block]:
    tags = dict.fromkeys(tag for cell in cells for tag in cell.tags if TAG.fullmatch(tag))
    for tag in tags:
        found = tuple(index for index, cell in enumerate(cells) if tag in cell.tags)
        category = re.split(r"[-_:]", tag)[0]
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", tag)
        yield Block(name=name, category=category, cells=found, reasons=(f"has the tag `{tag}`",) * len(found))


def recognised(cells: Sequence[SolutionCell], effects: Sequence[Effects]) -> Iterator[Block]:
    found: dict[str, list[tuple[int, str]]] = {}
    verdicts = [category_of(cells, effects, index) for index in range(len(cells))]
    prepared = [index for index, verdict in enumerate(verdicts) if verdict and verdict[0] != "data"]
    known = {index for index, verdict in enumerate(verdicts) if verdict}
    start = start_of_goal(effects, len(cells), known, max(prepared, default=-1))
    for index, verdict in enumerate(verdicts[:start]):
        if verdict is not None:
            found.setdefault(verdict[0], []).append((index, verdict[1]))
    if start < len(cells):
        first = "runs the last program" if effects[start].runs else "stands before the answer, which needs it"
        found["goal"] = [
            (start, first),
            *((index, "comes after it") for index in range(start + 1, len(cells))),
        ]
    for category, pairs in found.items():
        yield Block(
            name=category,
            category=category,
            cells=tuple(index for index, _ in pairs),
            reasons=tuple(reason for _, reason in pairs),
        )


def start_of_goal(effects: Sequence[Effects], answer: int, known: Collection[int], prepared: int) -> int:
    """From where on cells lead to the answer: the last program that is run, else the last cell it needs.

    What runs before the last cell that prepares something, whose index is `prepared`, is only a trial. The
    cells in `known` are seen to deal with something else.
    """
    runs = [index for index in range(prepared + 1, answer) if effects[index].runs]
    if runs:
        return runs[-1]
    needed = [index for index in range(answer) if index not in known and depends(effects, answer, index, ())]
    return needed[-1] if needed else answer


def category_of(
    cells: Sequence[SolutionCell], effects: Sequence[Effects], index: int
) -> tuple[str, str] | None:
    """The category of one cell and why; None of one that deals with nothing of that kind."""
    cell, found = cells[index], effects[index]
    if found.only_looks:
        return None
    source = IMPORT.sub("", cell.source)
    if found.installs:
        names = sorted(found.installs - {ANY})
        return "dependencies", f"installs {', '.join(names) or 'packages'}"
    code = sorted(path for path in found.files_written if holds_code(path))
    settings = sorted(path for path in found.files_written if CONFIGURATION_FILE.search(path))
    if match := DEVICE.search(source):
        return "cpu", f"deals with `{match[0]}`"
    if settings:
        return "configuration", f"writes {', '.join(settings)}"
    if code and not found.runs:
        return category_of_edit(cells, index, f"{note_of(cells, effects, index)}\n{source}", code)
    if match := FETCHING.search(source):
        return "data", f"has `{match[0].strip()}`"
    return None


def category_of_edit(
    cells: Sequence[SolutionCell], index: int, text: str, paths: Sequence[str]
) -> tuple[str, str]:
    shown = "files" if list(paths) == [ANY] else ", ".join(path for path in paths if path != ANY)
    if index and cells[index - 1].has_failed:
        return "issue", f"changes {shown} after a cell that failed"
    for category, pattern in (("issue", TROUBLE), ("configuration", SETTING), ("data", FETCHING)):
        if match := pattern.search(text):
            return category, f"changes {shown} and has `{match[0].strip()}`"
    is_source = any(path.endswith(".py") for path in paths) or REPLACING.search(text)
    return "issue" if is_source else "data", f"changes {shown}"


def note_of(cells: Sequence[SolutionCell], effects: Sequence[Effects], index: int) -> str:
    """The text before a cell, also where it stands before cells that only look, and it before the next."""
    while not cells[index].note and index and effects[index - 1].only_looks:
        index -= 1
    return cells[index].note
