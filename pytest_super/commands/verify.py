"""`pytest-super verify`: check that tasks can be solved, have one answer, and do not leak it."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_super.commands.json_file import write_json
from pytest_super.commands.task_files import add_paths, valid_tasks

HELP = "find tasks that fail with their own solution, are flaky, or leak their answer"
# Options that are passed on to pytest, where their names begin with `super-`.
PASSED_ON = {
    "sandbox": "the provider of sandboxes (default: auto)",
    "image": "the container image",
    "ca-bundle": "certificates that pip, git and requests trust in sandboxes",
    "pip-config": "a pip.conf for sandboxes",
    "mount": "a folder that sandboxes see, as HOST:INSIDE; can be repeated",
}
DIRECTORY = Path(".super/verify")


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Exit status: 0 no problem was found, 1 some were. For other options of pytest set PYTEST_ADDOPTS."
    )
    add_paths(parser)
    parser.add_argument("--epochs", type=int, default=3, metavar="N", help="runs of each task; by default 3")
    parser.add_argument(
        "--run", type=Path, dest="stored", metavar="DIR", help="judge this finished run of gold instead"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the findings to this file")
    parser.add_argument("-n", dest="workers", metavar="N", help="workers, as for pytest-xdist")
    parser.add_argument(
        "--dir", type=Path, default=DIRECTORY, metavar="DIR", help=f"for the run's results ({DIRECTORY})"
    )
    for name, meaning in PASSED_ON.items():
        parser.add_argument(f"--{name}", action="append", dest=name, metavar="VALUE", help=meaning)


def run(arguments: Namespace) -> int:
    from pytest_super.authoring.verify.gold_run import read_gold, run_gold
    from pytest_super.authoring.verify.lines import verification_data, verification_lines
    from pytest_super.authoring.verify.verification import verify
    from pytest_super.report.live_command import LiveCommand

    tasks = valid_tasks(arguments.paths)
    folder = arguments.stored or run_gold(arguments.paths, pytest_options(arguments), arguments.dir)
    with LiveCommand(lambda: "reading the trials and what their agents see"):
        verification = verify(tasks, read_gold(folder))
    for line in verification_lines(verification, folder):
        print(line)
    if arguments.json is not None:
        write_json(arguments.json, verification_data(verification, folder))
    return 1 if verification.findings else 0


def pytest_options(arguments: Namespace) -> list[str]:
    passed = [f"--super-{name}={value}" for name in PASSED_ON for value in getattr(arguments, name) or ()]
    workers = [f"-n{arguments.workers}"] if arguments.workers else []
    return [f"--super-epochs={arguments.epochs}", *workers, *passed]
