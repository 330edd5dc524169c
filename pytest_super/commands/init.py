"""`pytest-super init`: a project to start from."""

import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path

HELP = "write starter tasks, a conftest and a CI file to a folder"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", type=Path, default=Path())


def run(arguments: Namespace) -> int:
    from pytest_super.authoring.starter import write_starter

    for path in write_starter(arguments.folder):
        print(path)
    folder: Path = arguments.folder
    enter = "" if folder.samefile(Path()) else f"cd {shlex.quote(str(folder))} && "
    print(f"\nnow run: {enter}pytest --super-agent=gold")
    print("(the tasks import packages that pytest-super[tasks] installs)")
    return 0
