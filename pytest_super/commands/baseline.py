"""`pytest-super baseline`: the file with which later runs are compared."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_super.commands.compare import add_max_regression
from pytest_super.option_types import Epochs, epochs
from pytest_super.statistics import require_scipy

HELP = "write, show or check the baseline of later runs"


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    update = actions.add_parser("update", help="write a run's trials into the file, in place of its content")
    update.add_argument("run_folder", type=Path, metavar="RUN", help="the folder of a stored run")
    actions.add_parser("show", help="print what the file says of each task")
    check = actions.add_parser("check", help="print what a comparison with it can find")
    check.add_argument(
        "--epochs", type=epochs, default=Epochs(1, 1), help="--super-epochs of the later run (default: 1)"
    )
    add_max_regression(check)
    for action in actions.choices.values():
        action.add_argument(
            "--file", type=Path, default=Path("baseline.json"), help="the baseline (default: baseline.json)"
        )


def run(arguments: Namespace) -> int:
    require_scipy()
    from pytest_super.comparison.baseline import read_baseline, write_baseline
    from pytest_super.comparison.side import side_of_run
    from pytest_super.gates.baseline import plan_of
    from pytest_super.report.comparison import plan_lines, side_lines

    if arguments.action == "update":
        write_baseline(arguments.file, side_of_run(arguments.run_folder))
    side = read_baseline(arguments.file)
    if arguments.action != "check":
        for line in side_lines(side):
            print(line)
        return 0
    margin = arguments.max_regression / 100
    plan = plan_of(side, side.tasks, arguments.epochs, margin)
    for line in plan_lines(plan, side, margin):
        print(line)
    drops = [one.finds.detectable for one in plan.sets.values()]
    return int(any(drop is None or drop > margin for drop in drops))
