"""`pytest-super rescore`: stored trajectories scored again, by both ways, beside their published figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.errors import SuperError, TaskFileError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction

    from pytest_super.tasks.task import Task


def add_rescore_parser(subparsers: _SubParsersAction[ArgumentParser]) -> None:
    """Add `rescore` to the command line; its namespace carries `run`, a function of the namespace."""
    parser = subparsers.add_parser(
        "rescore",
        help="score stored trajectories again, as the paper and as the published code do",
        epilog="Exit status: 0 all were scored, 1 some could not be read or scored.",
    )
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="a trajectory.jsonl, a published history.ipynb, or a folder with some: a run, its trials, …",
    )
    parser.add_argument("--tasks", type=Path, metavar="PATH", help="the task files to score against")
    parser.add_argument(
        "--answers", type=Path, metavar="FILE", help="JSON {task id: answer}, or JSON Lines with `task_id`"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures and reasons there, too")
    parser.set_defaults(run=run_rescore)


def run_rescore(arguments: Namespace) -> int:
    """Raises SuperError for what is wrong with the arguments; a trajectory that is broken is only told."""
    from pytest_super.commands import write_json
    from pytest_super.rescore.lines import rescore_data, rescore_lines
    from pytest_super.rescore.scores import rescore_all
    from pytest_super.rescore.trials import read_trials

    tasks = known_tasks(arguments.tasks, arguments.answers)
    trials, unread = read_trials(arguments.paths)
    rescored, unscored = rescore_all(trials, tasks)
    broken = [*unread, *unscored]
    for line in rescore_lines(rescored, broken):
        print(line)
    if arguments.json is not None:
        write_json(arguments.json, rescore_data(rescored, broken))
    return 1 if broken else 0


def known_tasks(tasks: Path | None, answers: Path | None) -> dict[str, Task]:
    """What to score against, by task id. Raises SuperError."""
    from pytest_super.commands import load_all, task_files
    from pytest_super.rescore.golds import add_answers

    if tasks is None and answers is None:
        raise SuperError("name what to score against: --tasks=PATH, --answers=FILE, or both")
    loaded, errors = load_all(task_files(tasks)) if tasks else ([], [])
    if errors:
        raise TaskFileError("\n".join(errors))
    known = {task.id: task for task in loaded}
    return add_answers(known, answers) if answers else known
