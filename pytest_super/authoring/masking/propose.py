"""Proposes blocks of a solution as sub-problems, by the tags of its cells, else by their text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_super.tasks.solution import SolutionCell
from pytest_super.tasks.task import CATEGORIES
from pytest_super.tasks.yaml_writer import to_yaml
from pytest_super.words import one_line

# The tag of a category, alone or followed by a name: `data`, `data-labels`.
TAG = re.compile(rf"(?:{'|'.join(CATEGORIES)})(?:[-_:].+)?")

IMPORT = re.compile(r"^\s*(?:import|from)\s.*$", re.MULTILINE)
# Without `>`, with which `echo` and `cat` write files.
LOOK = re.compile(r"!\s*(?:cat|du|echo|find|grep|head|ls|pwd|sed -n|tail|tree|wc)\b[^>]*")
INSTALL = re.compile(r"^\s*[!%].*\b(?:pip3?|conda|mamba|uv|apt|apt-get) (?:.* )?install\b", re.MULTILINE)
RUN = re.compile(
    r"^\s*(?:%run\b|!(?!.*\bpip install\b)(?:.*[\s;&|])?(?:(?:python3?|bash|sh|make)\s|\./))", re.MULTILINE
)
EDIT = re.compile(r"\bsed -i|\.replace\(|\breplace\(|re\.sub\(|^%%writefile|\.write_text\(", re.MULTILINE)
CONFIGURATION_FILE = re.compile(r"%%writefile\s+\S+\.(?:ya?ml|json|cfg|ini|toml|sh)\b")
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


@dataclass(frozen=True, kw_only=True)
class Block:
    """Cells of one category, by index."""

    name: str
    """Added to the task's id; in most cases the category."""
    category: str
    cells: tuple[int, ...]
    reasons: tuple[str, ...]
    """Why each cell belongs to the block."""


def propose(cells: Sequence[SolutionCell], answer: int) -> list[Block]:
    """Blocks of the cells before `answer`, in the order of the categories; by tags alone if there are any."""
    blocks = list(tagged(cells[:answer])) or list(recognised(cells, answer))
    return sorted(blocks, key=lambda block: CATEGORIES.index(block.category))


def tagged(cells: Sequence[SolutionCell]) -> Iterator[Block]:
    for tag in dict.fromkeys(tag for cell in cells for tag in cell.tags if TAG.fullmatch(tag)):
        found = tuple(index for index, cell in enumerate(cells) if tag in cell.tags)
        category = re.split(r"[-_:]", tag)[0]
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", tag)
        yield Block(name=name, category=category, cells=found, reasons=(f"has the tag `{tag}`",) * len(found))


def recognised(cells: Sequence[SolutionCell], answer: int) -> Iterator[Block]:
    found = [category_of(cells, index) for index in range(answer)]
    start, reason = start_of_goal(cells, found)
    for index in range(start, answer):
        found[index] = "goal", reason if index == start else "comes after it"
    for category in CATEGORIES:
        pairs = [(index, one[1]) for index, one in enumerate(found) if one and one[0] == category]
        if pairs:
            indices, reasons = zip(*pairs, strict=True)
            yield Block(name=category, category=category, cells=indices, reasons=reasons)


def start_of_goal(cells: Sequence[SolutionCell], found: Sequence[tuple[str, str] | None]) -> tuple[int, str]:
    """The cell from which on all cells lead to the answer, and why; that of the answer without another."""
    answer = len(found)
    # A program that runs before something is prepared is a trial run.
    prepared = max((index for index, one in enumerate(found) if one and one[0] != "data"), default=-1)
    for index in reversed(range(prepared + 1, answer)):
        if RUN.search(cells[index].source):
            return index, "runs the last program"
    last = max((index for index, one in enumerate(found) if one), default=answer - 1)
    return last + 1, "comes after all that prepares the answer"


def category_of(cells: Sequence[SolutionCell], index: int) -> tuple[str, str] | None:
    """The category of one cell and the reason; None if its text shows none."""
    cell = cells[index]
    # Importing something does not use it: `from datasets import load_dataset`.
    source = IMPORT.sub("", cell.source)
    if only_looks(cell):
        return None
    if INSTALL.search(source):
        return "dependencies", "installs packages"
    if match := DEVICE.search(source):
        return "cpu", f"deals with `{match[0]}`"
    if match := CONFIGURATION_FILE.search(source):
        return "configuration", f"has `{match[0]}`"
    if EDIT.search(source) and not RUN.search(source):
        return category_of_edit(cells, index, f"{note_of(cells, index)}\n{source}")
    if match := FETCHING.search(source):
        return "data", f"has `{match[0].strip()}`"
    return None


def category_of_edit(cells: Sequence[SolutionCell], index: int, text: str) -> tuple[str, str]:
    if index and cells[index - 1].has_failed:
        return "issue", "changes files after a cell that failed"
    for category, pattern in (("issue", TROUBLE), ("configuration", SETTING), ("data", FETCHING)):
        if match := pattern.search(text):
            return category, f"changes files and has `{match[0].strip()}`"
    return "issue", "changes files"


def only_looks(cell: SolutionCell) -> bool:
    """Whether the cell only lists files or prints their content."""
    lines = [line.strip() for line in cell.source.splitlines() if line.strip()]
    return all(LOOK.fullmatch(line) and not EDIT.search(line) for line in lines)


def note_of(cells: Sequence[SolutionCell], index: int) -> str:
    """The text before a cell, or before the cells right before it that only look."""
    while not cells[index].note and index and only_looks(cells[index - 1]):
        index -= 1
    return cells[index].note


def skeleton(id: str, notebook: str) -> str:
    """A task file for a notebook that has none yet."""
    fields = {
        "id": id,
        "set": "expert",
        "query": "TODO: the whole problem, so that exactly one answer is right.\n",
        "answer_unknown": True,
        "solution": {"notebook": notebook},
    }
    note = "# TODO: `repository`, and the answer instead of `answer_unknown`; see task-format.md.\n"
    return note + to_yaml(fields)


def subproblems_yaml(id: str, cells: Sequence[SolutionCell], blocks: Iterable[Block], answer: int) -> str:
    """The field `subproblems` of the task `id`, with a comment that gives the reason for each cell."""
    lines = ["subproblems:"]
    for block in blocks:
        # A line break in a tag or a cell would end the comment.
        lines += [one_line(f"  # {line}") for line in comments(cells, block, answer)]
        lines += to_yaml({"subproblems": [fields_of(id, cells, block)]}).splitlines()[1:]
    return "\n".join(lines) + "\n"


def fields_of(id: str, cells: Sequence[SolutionCell], block: Block) -> dict[str, Any]:
    return {
        "id": f"{id}_{block.name}",
        "category": block.category,
        # The id if there is one: it stays the same when cells are added.
        "mask": [cells[index].id or cells[index].number for index in block.cells],
        "query": (
            "I have already executed some of the required steps: TODO, what is there by now.\n"
            "What remains: TODO, what is missing.\n"
            "\nYour goal: TODO, what must come out.\n"
            "\nAnswer with this JSON structure: TODO\n"
        ),
    }


def comments(cells: Sequence[SolutionCell], block: Block, answer: int) -> Iterator[str]:
    for index, reason in zip(block.cells, block.reasons, strict=True):
        first = next(line.strip() for line in cells[index].source.splitlines() if line.strip())[:70]
        yield f"cell {cells[index].number} {reason}: {first}"
    start = min(block.cells)
    yield f"runs before: {listed(range(start))}; the solution: {listed(range(start, answer + 1))}"
    if nearer := range(max(block.cells) + 1, answer):
        yield f"a nearer `goal`, with `submit` and `answer` of its own: {listed(nearer)}"


def listed(indices: Sequence[int]) -> str:
    return ", ".join(str(index + 1) for index in indices) or "nothing"
