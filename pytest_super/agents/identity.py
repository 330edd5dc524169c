"""What an agent is made of, so that a change of it is noticed: its code and data files, or its command."""

from __future__ import annotations

import importlib
import shlex
from pathlib import Path
from typing import Any

from pytest_super.agents.registry import BUILT_IN, offered_agents
from pytest_super.digests import digest, file_digest, source_of

PACKAGE = "pytest_super"


def contents_of(name: str, base: Path) -> str:
    """A digest of the agent's files; "" if it has none that are known.

    Of a class, of the whole top-level package that has it; of a built-in agent, of all built-in ones; of a
    program of ours in an image, of what runs them; of a program on this machine, of the files that its
    command names, relative to `base`. Files of the user's own programs in an image are not here.
    """
    kind, _, command = name.partition(":")
    if is_in_image(name):
        return ""
    if name in BUILT_IN:
        return digest(source_of(Path(__file__).parent))
    if kind == "host-command":
        return digest([of_file(path) for path in named_files(command, base)])
    name = name.partition("==")[0]
    if module_of(name) == PACKAGE:
        return digest(source_of(Path(__file__).parents[1] / "programs"))
    # A name without a colon can be one that a conftest's hook knows, and by chance that of a module.
    is_import = ":" in name or name in offered_agents().names
    return of_module(module_of(name)) if is_import else ""


def is_in_image(name: str) -> bool:
    """Whether the agent is a program in the task's own image."""
    return name.partition(":")[0] == "command"


def module_of(name: str) -> str:
    offered = offered_agents()
    value = offered[name].value if name in offered.names else name
    return value.partition(":")[0].partition(".")[0].strip()


def of_module(name: str) -> str:
    """Of a top-level module or package; "" for a name that is none, as of a conftest's own agent."""
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit):
        return ""
    # A namespace package has several folders and no file.
    folders: list[str] = list(getattr(module, "__path__", ()))
    if folders:
        return digest([source_of(Path(folder)) for folder in folders])
    file = getattr(module, "__file__", None)
    return digest(of_file(Path(file))) if file else ""


def named_files(command: str, base: Path) -> list[Path]:
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return [path for word in words if (path := base / word).is_file()]


def of_file(path: Path) -> list[Any]:
    return [path.name, file_digest(path)]
