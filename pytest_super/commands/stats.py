"""`pytest-super stats`: count the content of a collection of tasks, as in the tables of the SUPER paper."""

from argparse import Namespace

from pytest_super.commands.task_files import add_paths, valid_tasks

HELP = "count tasks, repositories, categories and gold code"
add_arguments = add_paths


def run(arguments: Namespace) -> int:
    from pytest_super.authoring.stats import stats_lines

    for line in stats_lines(valid_tasks(arguments.paths)):
        print(line)
    return 0
