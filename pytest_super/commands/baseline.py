"""`pytest-super baseline`: the file with which later runs are compared."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import suppress
from datetime import date
from pathlib import Path

from pytest_super.commands.compare import add_max_regression
from pytest_super.commands.stored_run import add_run, run_of
from pytest_super.errors import SuperError
from pytest_super.gate import require_scipy
from pytest_super.gate.side import Side
from pytest_super.option_types import PASS_CHANCE, Epochs, chance, epochs, told
from pytest_super.words import counted, named, one_line

MOST_NAMED = 10
HELP = "write, show or check the baseline of later runs"


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    update = actions.add_parser("update", help="write a run's trials into the file, in place of its content")
    add_run(update)
    update.add_argument(
        "--add",
        action="store_true",
        help="add the run, which must be of the same agent and model, to the content",
    )
    update.add_argument(
        "--with-answers",
        action="store_true",
        help="also write the recorded answers of the model, which later runs take, beside the file",
    )
    actions.add_parser("show", help="print what the file says of each task")
    check = actions.add_parser("check", help="print what a comparison with it can find, and why to renew it")
    later = "--super-epochs of the later run (1)"
    check.add_argument("--epochs", type=told(epochs), default=Epochs(1, 1), help=later)
    check.add_argument(
        "--pass-chance",
        metavar="CHANCE",
        type=told(chance),
        default=PASS_CHANCE,
        help=f"--super-pass-chance ({PASS_CHANCE})",
    )
    check.add_argument(
        "--must-solve",
        type=Path,
        help="also print how often --super-must-solve=FILE is red with nothing changed",
    )
    add_max_regression(check)
    for action in actions.choices.values():
        action.add_argument(
            "--file", type=Path, default=Path("baseline.json"), help="the baseline (default: baseline.json)"
        )


def run(arguments: Namespace) -> int:
    require_scipy()
    from pytest_super.gate import Selected
    from pytest_super.gate.baseline_file import read_baseline, why_renew
    from pytest_super.gate.must_solve import read_must_solve
    from pytest_super.gate.plan import plan_of
    from pytest_super.report.comparison import plan_lines, side_lines

    if arguments.action == "update":
        update = add if arguments.add else write_whole
        update(arguments.file, run_of(arguments), with_answers=arguments.with_answers)
    side = read_baseline(arguments.file)
    if arguments.action != "check":
        for line in side_lines(side):
            print(line)
        return 0
    margin = arguments.max_regression / 100
    selected = Selected(ids=side.tasks.keys())
    plan = plan_of(
        side,
        selected,
        arguments.epochs,
        margin,
        pass_chance=arguments.pass_chance,
        leaves_out=arguments.epochs.is_adaptive,
    )
    for line in plan_lines(plan, side, margin):
        print(line)
    if arguments.must_solve is not None:
        values = {id: task.values for id, task in side.tasks.items()}
        chance = read_must_solve(arguments.must_solve).chance_of_red(values, arguments.epochs.least)
        print(f"{arguments.must_solve.name}: red in {100 * chance:.0f} % of runs with nothing changed")
    reasons = list(why_renew(side, margin, date.today()))
    for line in reasons:
        print(one_line(f"renew: {line}"))
    return int(bool(reasons) or any(plan.weak_lines(margin)))


def write_whole(file: Path, run_folder: Path, *, with_answers: bool) -> None:
    """Raises SuperError if the run has left tasks out, which would never be compared again."""
    from pytest_super.gate.baseline_file import read_baseline, write_baseline
    from pytest_super.gate.side import side_of_run
    from pytest_super.store.baseline_answers import archive_of, write_answers

    side = side_of_run(run_folder)
    refuse_answers(side)
    if side.not_run:
        raise SuperError(
            f"{side.name} has not run {counted(len(side.not_run), 'task')} that its baseline never solved: "
            "add it (--add), or make a baseline of a run with --super-all-tasks"
        )
    with suppress(SuperError):
        before = read_baseline(file)
        print(one_line(f"{file.name} had {named(list(before.runs), MOST_NAMED)}"))
        warn_of_selection(file, before, run_folder)
    write_baseline(file, side)
    archive_of(file).unlink(missing_ok=True)
    if with_answers:
        trials = write_answers(file, side.run, run_folder, dict.fromkeys(side.tasks, 0))
        name = archive_of(file).name
        if not trials:
            # Each later run that asks a model would refuse an empty one.
            archive_of(file).unlink()
            print(f"{name} is not written: no trial has answers of a model")
        else:
            print(f"{name}: the answers of {counted(trials, 'trial')}")


def warn_of_selection(file: Path, before: Side, run_folder: Path) -> None:
    """Say so if a run was compared with the baseline that it becomes."""
    from pytest_super.store.json_lines import read_json
    from pytest_super.store.verdict import was_compared

    if was_compared(run_folder) and read_json(run_folder / "run.json").get("baseline") == before.run:
        print(
            f"warning: this run was compared with {file.name}: a baseline of runs that passed, or are "
            "better, makes later runs red: take all runs of a schedule"
        )


def refuse_answers(side: Side) -> None:
    """Raises SuperError for a run with recorded answers: the same luck would be kept for ever."""
    if forked_from := side.subject.get("forked_from"):
        raise SuperError(
            f"{side.name} is a fork of {forked_from}: a baseline is made of runs of whole trials"
        )
    if side.answers:
        raise SuperError(
            f"{side.name} got answers of the model from {side.answers}: "
            "a baseline is made of runs without --super-answers"
        )


def add(file: Path, run_folder: Path, *, with_answers: bool) -> None:
    """Raises SuperError if the run cannot be added."""
    from pytest_super.gate.baseline_file import read_baseline, with_run, write_baseline
    from pytest_super.gate.side import side_of_run
    from pytest_super.store.baseline_answers import archive_of, write_answers

    side = read_baseline(file)
    warn_of_selection(file, side, run_folder)
    known = {side.run, *side.runs}
    added = side_of_run(run_folder, without=known)
    refuse_answers(added)
    found, left_out = with_run(side, added)
    if with_answers:
        # First: values whose answers are missing could not get them later.
        kept = found.tasks.keys() & added.tasks.keys() - {id for ids in left_out.values() for id in ids}
        after = {id: len(side.tasks[id].values) if id in side.tasks else 0 for id in sorted(kept)}
        trials = write_answers(file, side.run, run_folder, after, known)
        print(f"{archive_of(file).name}: further answers of {counted(trials, 'trial')}")
    write_baseline(file, found)
    for reason, ids in left_out.items():
        print(one_line(f"not added, {reason}: {named(ids, MOST_NAMED)}"))
