"""`pytest-super stats`: count the content of a collection of tasks, as in the tables of the SUPER paper."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path

from pytest_super.commands.json_file import write_json
from pytest_super.commands.task_files import add_paths, valid_tasks

HELP = "count tasks, repositories, categories and gold code"


def add_arguments(parser: ArgumentParser) -> None:
    add_paths(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers to this file")


def run(arguments: Namespace) -> int:
    from pytest_super.authoring.stats.summary import stats_lines, summarise

    stats = summarise(valid_tasks(arguments.paths))
    for line in stats_lines(stats):
        print(line)
    if arguments.json is not None:
        write_json(arguments.json, asdict(stats))
    return 0
