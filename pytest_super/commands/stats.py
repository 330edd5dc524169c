"""`pytest-super stats`: count the content of a collection of tasks, as in the tables of the SUPER paper."""

from argparse import ArgumentParser, Namespace

from pytest_super.commands.task_files import add_paths, valid_tasks

HELP = "count tasks, repositories, categories and gold code"


def add_arguments(parser: ArgumentParser) -> None:
    add_paths(parser)


def run(arguments: Namespace) -> int:
    from pytest_super.authoring.stats import stats_lines

    for line in stats_lines(valid_tasks(arguments.paths)):
        print(line)
    return 0
