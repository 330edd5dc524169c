"""`pytest-super rescore`: score stored trajectories again, in both ways, next to their published figures."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from pytest_super.authoring.rescore.scores import Rescored
from pytest_super.commands.json_file import write_json
from pytest_super.commands.stored_run import RUNS
from pytest_super.commands.task_files import known_tasks
from pytest_super.errors import SuperError
from pytest_super.store.stored_runs import find_path
from pytest_super.tasks.task import Task

HELP = "score stored trajectories again, as the paper and as the published code do"


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = "Exit status: 0 all were scored, 1 some could not be read or scored."
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="a run, a trajectory.jsonl, a published history.ipynb, or a folder with some",
    )
    parser.add_argument(
        "--tasks",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="the task files to score against; can be repeated",
    )
    parser.add_argument("--answers", type=Path, metavar="FILE", help="JSON Lines with `task_id` and `answer`")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write all figures and reasons to this file"
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="also write the scores as a new run beside the one that PATH names, which stays as it is",
    )


def run(arguments: Namespace) -> int:
    """A trajectory that cannot be read or scored is reported; the others are scored."""
    from pytest_super.authoring.rescore.lines import rescore_data, rescore_lines
    from pytest_super.authoring.rescore.scores import rescore_all
    from pytest_super.authoring.rescore.trials import read_trials

    arguments.paths = [find_path(RUNS, name) for name in arguments.paths]
    if arguments.write:
        from pytest_super.authoring.rescore.results import read_facts

        if len(arguments.paths) > 1:
            raise SuperError("--write needs the folder of one run")
        # A path without a run is an error before anything is scored.
        read_facts(arguments.paths[0])
    trials, unread = read_trials(arguments.paths)
    tasks = tasks_and_answers(arguments.tasks, arguments.answers, {trial.result.id for trial in trials})
    rescored, unscored = rescore_all(trials, tasks)
    broken = [*unread, *unscored]
    for line in rescore_lines(rescored, broken):
        print(line)
    if arguments.json is not None:
        write_json(arguments.json, rescore_data(rescored, broken))
    is_whole = write_new_run(arguments, rescored, tasks) if arguments.write else True
    return 0 if is_whole and not broken else 1


def write_new_run(arguments: Namespace, rescored: Sequence[Rescored], tasks: Mapping[str, Task]) -> bool:
    """Whether the new run has all trials that had ended. Raises SuperError."""
    from pytest_super.authoring.rescore.lines import new_run_lines
    from pytest_super.authoring.rescore.results import new_results, read_facts, write_run

    run = arguments.paths[0].resolve()
    found = new_results(run, rescored, tasks)
    if not any(one.rescored for one in found.results):
        reasons = "; ".join(f"{', '.join(names[:5])}: {why}" for why, names in found.left_out.items())
        raise SuperError(f"no run is written, because no trial of {run.name} can be scored: {reasons}")
    folder = write_run(run, read_facts(run), found.results, arguments.words)
    for line in new_run_lines(found, folder):
        print(line)
    return not found.left_out


def tasks_and_answers(tasks: Sequence[Path], answers: Path | None, ids: Collection[str]) -> dict[str, Task]:
    """The tasks to score against, by id, with the items of papers among `ids`. Raises SuperError."""
    from pytest_super.authoring.rescore.golds import add_answers

    if not tasks and answers is None:
        raise SuperError("name what to score against: --tasks=PATH, --answers=FILE, or both")
    known = known_tasks(tasks, ids)
    return add_answers(known, answers) if answers else known
