"""Proposed sub-problems as YAML, with the reasons as comments, for the author to complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.authoring.masking.def_use import Names, independent_cells, names_of
from pytest_super.authoring.masking.propose import only_looks
from pytest_super.tasks.yaml_writer import to_yaml
from pytest_super.words import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_super.authoring.masking.propose import Block
    from pytest_super.tasks.solution import SolutionCell

REMAINS = {
    "dependencies": "packages that the code needs are missing, or are there in versions that do not fit.",
    "cpu": "the code expects a GPU, and this machine has none.",
    "configuration": "the experiment is not configured. TODO: every value that decides the result.",
    "data": "the data is not there in the form that the code expects. TODO: what is wanted.",
    "issue": "the code stops with an error. TODO: which one, where it shows.",
    "goal": "all is prepared, and nothing was run. TODO: what is to be run, and how.",
    "other": "TODO: what is missing.",
}
STEPS = {
    "dependencies": "install what is needed and run it",
    "cpu": "make the changes with which it runs on the CPU, and run it",
    "configuration": "set these values and run it",
    "data": "prepare the data and run it",
    "issue": "resolve the error and run it",
    "goal": "run it and read the results",
    "other": "TODO",
}


def skeleton(id: str, notebook: str) -> str:
    """A task file for a notebook that has none yet."""
    fields = {
        "id": id,
        "set": "expert",
        "query": "TODO: the whole problem, so that exactly one answer is right.\n",
        "answer_unknown": True,
        "solution": {"notebook": notebook},
    }
    note = "# TODO: `repository`, and the answer in place of `answer_unknown`; see docs/task-format.md.\n"
    return note + to_yaml(fields)


def subproblems_yaml(id: str, cells: Sequence[SolutionCell], blocks: Iterable[Block], answer: int) -> str:
    """The field `subproblems` of the task `id`, with a comment that gives the reason for each cell."""
    # No cell has to wait for one that only looks, although it is opaque.
    names = [Names() if only_looks(cell) else names_of(cell.source) for cell in cells]
    lines = ["subproblems:"]
    for block in blocks:
        prefix = independent_cells(names, block.cells, answer)
        # A line break in a tag or a cell would end the comment.
        lines += [one_line(f"  # {line}") for line in comments(cells, block, prefix, answer)]
        fields = fields_of(id, cells, block, prefix)
        lines += to_yaml({"subproblems": [fields]}).splitlines()[1:]
    return "\n".join(lines) + "\n"


def fields_of(id: str, cells: Sequence[SolutionCell], block: Block, prefix: Sequence[int]) -> dict[str, Any]:
    return {
        "id": f"{id}_{block.name}",
        "category": block.category,
        "mask": [reference(cells[index]) for index in block.cells],
        "pre_execute": [reference(cells[index]) for index in prefix],
        "query": query_of(block),
    }


def reference(cell: SolutionCell) -> int | str:
    """The id if there is one: it stays the same when cells are added."""
    return cell.id or cell.number


def query_of(block: Block) -> str:
    return (
        "I have already executed some of the required steps: TODO, what is there by now.\n"
        f"What remains: {REMAINS[block.category]}\n"
        f"\nYour goal: {STEPS[block.category]}. TODO: what must come out.\n"
        "\nAnswer with this JSON structure: TODO\n"
    )


def comments(
    cells: Sequence[SolutionCell], block: Block, prefix: Sequence[int], answer: int
) -> Iterator[str]:
    for index, reason in zip(block.cells, block.reasons, strict=True):
        yield f"cell {cells[index].number} {reason}: {first_line(cells[index].source)}"
    gold = [index for index in range(answer + 1) if index not in prefix]
    yield f"runs before: {listed(prefix)}; the solution: {listed(gold)}"
    if nearer := [index for index in gold if max(block.cells) < index < answer]:
        yield f"a nearer `goal`, with `submit` and `answer` of its own: {listed(nearer)}"


def first_line(source: str) -> str:
    return next(line.strip() for line in source.splitlines() if line.strip())[:70]


def listed(indices: Sequence[int]) -> str:
    return ", ".join(str(index + 1) for index in indices) or "nothing"
