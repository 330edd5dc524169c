"""`pytest-super fork`: what would today's agent do from a step of a stored trial on?"""

import os
import sys
from argparse import ArgumentParser, Namespace

from pytest_super.commands.stored_run import add_run, run_of
from pytest_super.commands.task_files import TASKS, add_tasks, known_tasks
from pytest_super.errors import SuperError

HELP = "go on from a step of a stored trial with today's agent"


def add_arguments(parser: ArgumentParser) -> None:
    parser.usage = "%(prog)s RUN TASK --step=K [--tasks PATH] [options of pytest]"
    parser.epilog = "Agent, model and sandbox are those of the run, unless options say otherwise."
    parser.set_defaults(takes_further=True)
    add_run(parser)
    parser.add_argument("trial", metavar="TASK", help="a task of the run, or a trial: TASK[EPOCH]")
    parser.add_argument(
        "--step", type=int, required=True, metavar="K", help="the number of the last step that is replayed"
    )
    add_tasks(parser)


def run(arguments: Namespace) -> int:
    from pytest_super.authoring.fork import arguments_of, write_start
    from pytest_super.authoring.stored_trials import stored_trials, unchanged_task
    from pytest_super.store.answers import AnswerStore

    run_folder = run_of(arguments)
    # Epoch 1 of a task, or the epoch that is named.
    name = arguments.trial.removesuffix("[1]")
    found = {one.name: one for one in stored_trials(run_folder, [name])}
    if name not in found:
        raise SuperError(f"{run_folder.name} has no epoch 1 of {name}: name one of {', '.join(found)}")
    result = found[name]
    tasks = known_tasks(arguments.tasks or [TASKS], {result.id})
    try:
        task = unchanged_task(result, tasks)
    except SuperError as error:
        raise SuperError(f"{result.name} of {run_folder.name} cannot be forked: {error}") from None
    start = write_start(run_folder, result, arguments.step)
    given = [one for one in arguments.further if one != "--"]
    command = [
        *(sys.executable, "-m", "pytest", f"{task._path}::{task.id}"),
        *arguments_of(AnswerStore(run_folder).facts(), given),
        *given,
        f"--super-answers={start}",
    ]
    sys.stdout.flush()
    # In place of this process, so that signals and the exit status are those of pytest.
    os.execv(sys.executable, command)
