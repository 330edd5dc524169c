"""`pytest-super init`: a project to start from."""

import os
import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path

HELP = "write a project to start from: a task, an agent and a CI file"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--tasks", action="store_true", help="also the shipped tasks")


def run(arguments: Namespace) -> int:
    from pytest_super.authoring.starter import write_starter

    folder: Path = arguments.folder
    written = write_starter(folder, with_shipped_tasks=arguments.tasks)
    for path in written.new:
        print(os.path.relpath(path))
    for path in written.kept:
        print(f"{os.path.relpath(path)} exists and is unchanged")
    enter = "" if folder.samefile(Path()) else f"cd {shlex.quote(str(folder))} && "
    print(f"\nnow run: {enter}pytest --super-agent=gold")
    print("then:    pytest --super-agent=agents:Reader --super-sandbox=local")
    if arguments.tasks:
        print("without containers, the shipped tasks need: pip install 'pytest-super[tasks]'")
    return 0
