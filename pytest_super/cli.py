"""`pytest-super …`: what is not a test run."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.errors import SuperError

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 1 something is wrong with what was named, 2 the command line itself."""
    parsed = parser().parse_args(arguments)
    try:
        status: int = parsed.run(parsed)
    except SuperError as error:
        print(f"pytest-super: {error}", file=sys.stderr)
        return 1
    return status


def parser() -> argparse.ArgumentParser:
    from pytest_super.generate import add_generate_parser
    from pytest_super.importing import add_import_parser
    from pytest_super.kernel.providers.docker.image import add_image_parser
    from pytest_super.masking import add_mask_parser
    from pytest_super.rescore import add_rescore_parser
    from pytest_super.snapshots.prune import add_prune_parser
    from pytest_super.stats import add_stats_parser
    from pytest_super.trial_client import add_trial_parser
    from pytest_super.verify import add_verify_parser

    top = argparse.ArgumentParser(prog="pytest-super", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    init = commands.add_parser("init", help="starter tasks, a conftest and a CI file in a folder")
    init.add_argument("folder", nargs="?", type=Path, default=Path())
    init.set_defaults(run=run_init)
    validate = commands.add_parser("validate", help="check task files; no agent is run")
    validate.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    validate.set_defaults(run=run_validate)
    schema = commands.add_parser("schema", help="print the JSON Schema of task files")
    schema.set_defaults(run=run_schema)
    add_import_parser(commands)
    add_generate_parser(commands)
    add_mask_parser(commands)
    add_image_parser(commands)
    add_prune_parser(commands)
    add_trial_parser(commands)
    add_rescore_parser(commands)
    add_stats_parser(commands)
    add_verify_parser(commands)
    prompt = commands.add_parser("prompt", help="system prompts of published trajectories")
    prompts = prompt.add_subparsers(required=True, metavar="COMMAND")
    extract = prompts.add_parser("extract", help="print that of a history.ipynb, for --super-prompt")
    extract.add_argument("history", type=Path, metavar="HISTORY")
    extract.set_defaults(run=run_prompt_extract)
    return top


def run_init(arguments: argparse.Namespace) -> int:
    from pytest_super.starter import write_starter

    written = write_starter(arguments.folder)
    for path in written:
        print(path)
    enter = "" if arguments.folder.samefile(Path()) else f"cd {shlex.quote(str(arguments.folder))} && "
    print(
        f"\nnow run: {enter}pytest --super-agent=gold\n(the tasks import what pytest-super[tasks] installs)"
    )
    return 0


def run_validate(arguments: argparse.Namespace) -> int:
    from pytest_super.commands import load_all, task_files

    files = [file for path in arguments.paths for file in task_files(path)]
    tasks, errors = load_all(files)
    for error in errors:
        print(error)
    if errors:
        return 1
    print(f"{len(tasks)} tasks in {len(files)} files are valid")
    return 0


def run_schema(_arguments: argparse.Namespace) -> int:
    from pytest_super.schema import schema_text

    print(schema_text(), end="")
    return 0


def run_prompt_extract(arguments: argparse.Namespace) -> int:
    from pytest_super.store.published import read_history

    # Nothing but the prompt, and all of it: it is meant for a file.
    sys.stdout.write(read_history(arguments.history).system_prompt)
    return 0
