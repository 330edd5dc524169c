"""`pytest-super runs`: list the stored runs, and remove old ones."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_super.commands.stored_run import add_directory
from pytest_super.option_types import positive, told
from pytest_super.words import counted

HELP = "list the stored runs, or remove old ones"


def add_arguments(parser: ArgumentParser) -> None:
    add_directory(parser)
    parser.add_argument(
        "--prune",
        type=told(positive),
        metavar="N",
        help="remove all but the newest N runs and those of baselines, and the snapshots of prefixes",
    )
    parser.add_argument(
        "--baseline",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a baseline whose run stays; repeatable (default: baseline.json, if it is there)",
    )


def run(arguments: Namespace) -> int:
    from pytest_super.gate.baseline_file import read_baseline
    from pytest_super.report.stored_runs import run_lines
    from pytest_super.snapshots.record import remove_snapshots
    from pytest_super.store.stored_runs import remove_runs
    from pytest_super.store.user_cache import cache_folder

    if arguments.prune is not None:
        default = [path for path in (Path("baseline.json"),) if path.exists()]
        sides = [read_baseline(path) for path in arguments.baseline or default]
        but = {run for side in sides for run in (side.run, *side.runs)}
        for id in remove_runs(arguments.dir, keep=arguments.prune, but=but):
            print(f"removed {id}")
        if removed := remove_snapshots(cache_folder("snapshots")):
            print(f"removed {counted(removed, 'snapshot')}")
    for line in run_lines(arguments.dir):
        print(line)
    return 0
