"""`pytest-super compare`: a run next to another one, or to a baseline."""

from argparse import ArgumentParser, Namespace

from pytest_super.commands.stored_run import NAMES, add_directory
from pytest_super.gate import require_scipy
from pytest_super.option_types import points, told

HELP = "compare two runs: better, worse, or cannot tell"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("baseline", metavar="BASELINE", help=f"{NAMES}, or a baseline file")
    parser.add_argument("candidate", metavar="CANDIDATE", help="the same, of what is compared with it")
    add_directory(parser)
    add_max_regression(parser)


def add_max_regression(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--max-regression",
        type=told(points),
        default=10.0,
        metavar="POINTS",
        help="the drop to rule out (default: 10)",
    )


def run(arguments: Namespace) -> int:
    require_scipy()
    from pytest_super.gate.baseline_file import read_side
    from pytest_super.gate.comparison import compare
    from pytest_super.gate.difference import REGRESSED
    from pytest_super.gate.wording import decided_lines
    from pytest_super.report.comparison import comparison_lines
    from pytest_super.store.stored_runs import find_side
    from pytest_super.words import one_line

    names = (arguments.baseline, arguments.candidate)
    baseline, candidate = (read_side(find_side(arguments.dir, name)) for name in names)
    found = compare(baseline, candidate, arguments.max_regression / 100)
    for line in (*comparison_lines(found), *map(one_line, decided_lines(found))):
        print(line)
    return int(found.verdict == REGRESSED)
