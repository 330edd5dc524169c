"""`pytest-super verify`: check that tasks can be solved, have one answer, and do not leak it."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pytest_super.commands.json_file import write_json
from pytest_super.commands.pytest_options import add_pytest_options, pytest_options
from pytest_super.commands.sandboxes import kernel_starter
from pytest_super.commands.stored_run import RUNS
from pytest_super.commands.task_files import add_paths, valid_tasks
from pytest_super.options import SETS
from pytest_super.tasks.task import Task

HELP = "find tasks that fail with their own solution, are flaky, or leak their answer"
DIRECTORY = Path(".super/verify")


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Exit status: 0 no problem was found, 1 some were. For other options of pytest set PYTEST_ADDOPTS."
    )
    add_paths(parser)
    parser.add_argument("--epochs", type=int, default=3, metavar="N", help="runs of each task; by default 3")
    parser.add_argument("--run", dest="stored", metavar="RUN", help="judge this finished run of gold instead")
    parser.add_argument(
        "--functions", type=int, metavar="N", help="prove only N functions of each paper, drawn at random"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the findings to this file")
    parser.add_argument(
        "--dir", type=Path, default=DIRECTORY, metavar="DIR", help=f"for the run's results ({DIRECTORY})"
    )
    parser.add_argument(
        "--cheat", action="store_true", help="instead try ways to a good score without the work"
    )
    add_pytest_options(parser)


def run(arguments: Namespace) -> int:
    tasks = valid_tasks(arguments.paths)
    if arguments.cheat:
        return try_to_cheat(tasks, arguments)
    papers = [task for task in tasks if task.functions]
    others = [task for task in tasks if not task.functions]
    data: dict[str, Any] = {}
    if others:
        data.update(verify_by_gold(others, arguments, has_papers=bool(papers)))
    if papers and arguments.stored is None:
        proven = verify_papers(papers, arguments)
        data["papers"] = proven["papers"]
        data["findings"] = [*data.get("findings", ()), *proven["findings"]]
    if arguments.json is not None:
        write_json(arguments.json, data)
    return 1 if data.get("findings") else 0


def try_to_cheat(tasks: Sequence[Task], arguments: Namespace) -> int:
    from pytest_super.authoring.verify.cheating.trying import cheat_lines, findings_of, try_cheats
    from pytest_super.report.live import LiveCommand

    with LiveCommand(lambda: "trying to cheat"):
        trying = try_cheats(tasks, pytest_options(arguments), arguments.dir / "cheat")
    findings = list(findings_of(trying))
    for line in cheat_lines(trying):
        print(line)
    if arguments.json is not None:
        write_json(arguments.json, {"findings": [asdict(one) for one in findings]})
    return 1 if findings else 0


def verify_by_gold(tasks: Sequence[Task], arguments: Namespace, *, has_papers: bool) -> dict[str, Any]:
    """Run gold on the tasks, or read a stored run, and print what is wrong with them."""
    from pytest_super.authoring.verify.gold_run import read_gold, run_gold
    from pytest_super.authoring.verify.verification import verification_lines, verify
    from pytest_super.report.live import LiveCommand
    from pytest_super.store.stored_runs import find_run

    # Papers are proven in another way.
    sets = [f"--super-set={name}" for name in SETS if name != "functions"] if has_papers else []
    options = [f"--super-epochs={arguments.epochs}", *pytest_options(arguments), *sets]
    stored = find_run(RUNS, arguments.stored) if arguments.stored else None
    folder = stored or run_gold(arguments.paths, options, arguments.dir)
    with LiveCommand(lambda: "reading the trials and what their agents see"):
        verification = verify(tasks, read_gold(folder))
    for line in verification_lines(verification, folder):
        print(line)
    return {"run": str(folder), **asdict(verification)}


def verify_papers(papers: Sequence[Task], arguments: Namespace) -> dict[str, Any]:
    """Prove the papers, and print what is wrong with them."""
    from pytest_super.authoring.verify.papers.lines import prove_papers

    text = arguments.workers or ""
    workers = int(text) if text.isdecimal() else 0
    return prove_papers(
        papers,
        kernel_starter(arguments, "verify"),
        epochs=arguments.epochs,
        functions=arguments.functions,
        workers=workers or os.cpu_count() or 1,
        folder=arguments.dir,
    )
