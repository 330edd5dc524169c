"""`pytest-super mask`: propose or prove sub-problems of a solution, or mask functions of a folder."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_super.authoring.masking.proof import Proof, prove
from pytest_super.authoring.masking.propose import propose, skeleton, subproblems_yaml
from pytest_super.commands.mask_functions import add_function_arguments, mask_folder
from pytest_super.commands.sandboxes import add_sandbox_arguments, kernel_starter
from pytest_super.errors import SuperError
from pytest_super.report.live import LiveCommand
from pytest_super.session.trial.item import ReadyKernel
from pytest_super.tasks.fields import legal_id
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.solution import SolutionCell, answer_index, cells_of, solution_cells
from pytest_super.tasks.subproblems import DerivedTask
from pytest_super.tasks.task import Task
from pytest_super.words import printable_line

HELP = "mask parts of a solution (propose or prove sub-problems), or functions of a folder"


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = "Exit status: 0 done, 1 something is not proven, or --leaks has found something."
    parser.add_argument(
        "path", type=Path, metavar="PATH", help="a notebook, a task file, or a folder with Python files"
    )
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="of a folder with Python files: the masked copy"
    )
    proof = parser.add_argument_group("sub-problems of a task file")
    proof.add_argument("--check", action="store_true", help="prove them in kernels")
    add_sandbox_arguments(proof)
    add_function_arguments(parser)


def run(arguments: Namespace) -> int:
    if arguments.targets or arguments.path.is_dir():
        return mask_folder(arguments)
    if arguments.output:
        raise SuperError("--output is for the masked copy of a folder: YAML is printed, so send it to a file")
    if arguments.check:
        return check(arguments.path, kernel_starter(arguments, "mask-check"))
    if arguments.sandbox or arguments.image or arguments.pip_config:
        raise SuperError("--sandbox, --image and --pip-config are for --check")
    return print_proposal(arguments.path)


def print_proposal(path: Path) -> int:
    if path.suffix == ".ipynb":
        cells, id = cells_of(path), legal_id(path.stem) or "task"
        text = skeleton(id, path.name) + proposal(id, cells, len(cells) - 1)
    else:
        text = of_tasks(path)
    sys.stdout.write(text)
    return 0


def of_tasks(path: Path) -> str:
    tasks = [task for task in load_tasks(path) if task.solution and not isinstance(task, DerivedTask)]
    if not tasks:
        raise SuperError(f"{path}: no task in it has a solution to cut from")
    parts = []
    for task in tasks:
        assert task.solution is not None
        cells = solution_cells(task.solution, path.parent)
        parts.append(f"# {task.id}\n" + proposal(task.id, cells, answer_index(task.solution, len(cells))))
    return "".join(parts)


def proposal(id: str, cells: Sequence[SolutionCell], answer: int) -> str:
    blocks = propose(cells, answer)
    if not blocks:
        return "# No cell was recognised as part of a sub-problem: give cells the tag of a category.\n"
    return subproblems_yaml(id, cells, blocks, answer)


def check(path: Path, start: Callable[[Task], ReadyKernel]) -> int:
    """Prove the sub-problems, and print a line for each. Exit status 1 if any is not proven."""
    tasks = [task for task in load_tasks(path) if isinstance(task, DerivedTask)]
    if not tasks:
        raise SuperError(f"{path}: it has no `subproblems`")
    proofs: list[Proof] = []
    with LiveCommand(lambda: f"{len(proofs)}/{len(tasks)} sub-problems checked") as live:
        for task in tasks:
            with live.activity(task.id, "its cells, with and without the masked ones"):
                proof = prove(task, lambda task: start(task).kernel)
            proofs.append(proof)
            verdict = "proven" if proof.is_proven else "not proven"
            live.print_line(printable_line(f"{task.id}: {verdict}: {proof.reason}"))
    return 0 if all(proof.is_proven for proof in proofs) else 1
