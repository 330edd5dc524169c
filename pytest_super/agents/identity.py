"""What an agent is made of, so that a change of it is noticed: its code and data files, or its command."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatch
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from pytest_super.agents.imports import OwnFiles, files_of_modules, finder, with_imports
from pytest_super.agents.registry import BUILT_IN, offered_agents
from pytest_super.digests import digest, file_digest, files_of, source_of
from pytest_super.tasks.task import TASK_SUFFIX

PACKAGE = "pytest_super"
# Bytes of a text; larger files are data of another kind.
LARGEST = 2**20
# Names of files that decide nothing unless other code imports them.
TESTS = ("conftest.py", "test_*.py", "*_test.py")


def contents_of(name: str, base: Path, root: Path) -> str:
    """A digest of the agent's files; "" if it has none that are known.

    Of a class, of the whole top-level package that has it, and of what that imports below `root`; of a
    built-in agent, of all built-in ones; of a program of ours in an image, of what runs them; of a program on
    this machine, of the files that its command names, relative to `base`, and of what they import below
    `root`. Files of the user's own programs in an image are not here.
    """
    kind = name.partition(":")[0]
    if is_in_image(name):
        return ""
    if name in BUILT_IN:
        return digest(source_of(Path(__file__).parent))
    if kind != "host-command" and module_of(name.partition("==")[0]) == PACKAGE:
        return digest(source_of(Path(__file__).parents[1] / "programs"))
    files = own_files(name, base, root)
    return "" if files is None else digest_of(files)


def own_files(name: str, base: Path, root: Path) -> list[tuple[str, Path]] | None:
    """The files of a user's agent with the names of its modules; None if it is ours, or none are known."""
    kind, _, command = name.partition(":")
    if kind == "host-command":
        return of_program(command, base, root)
    name = name.partition("==")[0]
    # A name without a colon can be one that a conftest's hook knows, and by chance that of a module.
    is_import = not is_in_image(name) and (":" in name or name in offered_agents().names)
    module = module_of(name)
    return of_module(module, root) if is_import and module != PACKAGE else None


@lru_cache(maxsize=1)
def texts_of_agent(name: str, base: Path, root: Path) -> Mapping[str, str]:
    """The texts of a user's agent by their paths, without task files. Read once in a run."""
    files = [path for _, path in own_files(name, base, root) or () if not path.name.endswith(TASK_SUFFIX)]
    texts = (path for path in files if path.stat().st_size <= LARGEST)
    return {str(path): path.read_text(encoding="utf-8", errors="replace") for path in texts}


def is_in_image(name: str) -> bool:
    """Whether the agent is a program in the task's own image."""
    return name.partition(":")[0] == "command"


def module_of(name: str) -> str:
    offered = offered_agents()
    value = offered[name].value if name in offered.names else name
    return value.partition(":")[0].partition(".")[0].strip()


def of_module(name: str, root: Path) -> list[tuple[str, Path]] | None:
    """List the files of a top-level module or package; None for other names, as of a conftest's own agent."""
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit):
        return None
    # A namespace package has several folders and no file.
    folders = [Path(folder) for folder in getattr(module, "__path__", ())]
    if not (folders or getattr(module, "__file__", None)):
        return None
    files = dict(files_of_package(name, folders)) if folders else {name: Path(str(module.__file__))}
    own = OwnFiles([root, *(place.parent for place in folders or files.values())])
    code = {module: path for module, path in files.items() if own(path)}
    found = files | with_imports(code, finder(), lambda path: own(path) and not is_ours(path))
    return list(found.items())


def files_of_package(name: str, folders: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """The files of a package, code and data, with the names of modules for code."""
    for folder in folders:
        for path in files_of(folder):
            if not any(fnmatch(path.name, test) for test in TESTS):
                parts = path.relative_to(folder).as_posix().removesuffix(".py").split("/")
                yield ".".join([name, *parts]).removesuffix(".__init__"), path


def of_program(command: str, base: Path, root: Path) -> list[tuple[str, Path]]:
    """List the files that a command line names, and what their Python code imports."""
    found: list[tuple[str, Path]] = []
    for named, folder in named_files(command, base):
        found += with_imports(named, finder([folder]), OwnFiles([root, folder])).items()
    return found


def digest_of(files: Iterable[tuple[str, Path]]) -> str:
    return digest(sorted([name, file_digest(path)] for name, path in files))


def is_ours(path: Path) -> bool:
    return path.is_relative_to(Path(__file__).parents[1])


def named_files(command: str, base: Path) -> Iterator[tuple[dict[str, Path], Path]]:
    """Each file and each module of Python (by `-m`) that a command line names, as files by their names.

    With the folder in which Python looks for what it imports.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    for option, word in pairwise(["", *words]):
        if (path := base / word).is_file():
            yield {path.name.removesuffix(".py"): path}, path.parent
        elif option == "-m":
            yield dict(files_of_modules([f"{word}.__main__"], finder([base]))), base
