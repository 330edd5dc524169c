"""`pytest-super why`: the steps at which trials lost their tasks, or the bodies that are wrong."""

import shutil
from argparse import ArgumentParser, Namespace

from pytest_super.commands.pytest_options import add_pytest_options, pytest_options
from pytest_super.commands.stored_run import add_run, run_of
from pytest_super.commands.task_files import TASKS, add_tasks, known_tasks
from pytest_super.errors import SuperError

HELP = "find the steps at which unsolved trials lost their tasks, or the bodies that are wrong"


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = "Exit status: 0 each trial has an answer, 1 of some nothing can be told."
    add_run(parser, is_optional=True)
    parser.add_argument("names", nargs="*", metavar="TASK", help="tasks or trials (default: all unsolved)")
    add_tasks(parser)
    add_pytest_options(parser)


def run(arguments: Namespace) -> int:
    from pytest_super.authoring.fork import sandbox_arguments
    from pytest_super.authoring.stored_trials import stored_trials
    from pytest_super.authoring.why.lines import answer_lines, lost_step, refused_line
    from pytest_super.authoring.why.rounds import search_all
    from pytest_super.authoring.why.searches import CannotTell
    from pytest_super.authoring.why.trials import searchable
    from pytest_super.store.answers import AnswerStore
    from pytest_super.store.stored_runs import run_folders
    from pytest_super.store.why import Why, write_why

    run_folder = run_of(arguments)
    results = [one for one in stored_trials(run_folder, arguments.names) if one.is_scored and not one.solved]
    if not results:
        print(f"{run_folder.name} has no unsolved trial")
        return 0
    facts = AnswerStore(run_folder).facts()
    tasks = known_tasks(arguments.tasks or [TASKS], {result.id for result in results})
    trials, refused = [], 0
    for result in results:
        try:
            trials.append(searchable(run_folder, result, tasks, str(facts["scoring"])))
        except SuperError as error:
            refused += 1
            print(refused_line(result.name, str(error)))
    folder = arguments.dir / "why" / run_folder.name
    shutil.rmtree(folder, ignore_errors=True)
    options = pytest_options(arguments)
    # In the same sandboxes as the trials.
    given = {one.partition("=")[0] for one in options}
    in_others = any(one.startswith("--super-") for one in {*options} - {*sandbox_arguments(facts, ())})
    stored = [] if in_others else run_folders(arguments.dir)
    for searched in search_all(trials, [*sandbox_arguments(facts, given), *options], folder, stored):
        refused += isinstance(searched.answer, CannotTell)
        lines = list(answer_lines(searched))
        print(*lines, sep="\n", flush=True)
        lost = lost_step(searched)
        found = Why(lines, lost.number if lost else None)
        write_why(run_folder / searched.trial.result.folder, found)
    return 1 if refused else 0
