"""What an agent is made of, so that a change of it is noticed: its code and data files, or its command."""

import ast
import importlib
import importlib.util
import shlex
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatch
from functools import cache, lru_cache
from importlib.machinery import SOURCE_SUFFIXES, ModuleSpec, PathFinder
from itertools import pairwise
from pathlib import Path

from pytest_super.agents.registry import BUILT_IN, offered_agents
from pytest_super.digests import digest, file_digest, files_of, source_of
from pytest_super.tasks.task import TASK_SUFFIX

Find = Callable[[str], ModuleSpec | None]
"""Finds a module by its name."""

# Functions that import the module that their first argument names.
IMPORTING = ("import_module", "__import__")
INSTALLED = {"site-packages", "dist-packages"}


def with_imports(start: Mapping[str, Path], find: Find, is_own: Callable[[Path], bool]) -> dict[str, Path]:
    """The given files and the own ones that they import, at any depth, by the names of their modules."""
    found, todo = dict(start), list(start)
    while todo:
        name = todo.pop()
        for module, file in files_of_modules(names_in(name, found[name]), find):
            if module not in found and is_own(file):
                found[module] = file
                todo.append(module)
    return found


def names_in(module: str, file: Path) -> Iterator[str]:
    """The names that a module's code imports; some can be attributes of modules. None if it is no Python."""
    if file.suffix not in SOURCE_SUFFIXES:
        return
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    package = module if file.stem == "__init__" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from names_from(node, package)
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in IMPORTING and node.args and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value)


def names_from(node: ast.ImportFrom, package: str) -> Iterator[str]:
    parts = package.split(".")
    above = parts[: len(parts) - node.level + 1] if node.level else []
    base = ".".join([*above, *filter(None, [node.module])])
    yield base
    yield from (f"{base}.{alias.name}" for alias in node.names)


def files_of_modules(names: Iterable[str], find: Find) -> Iterator[tuple[str, Path]]:
    """The modules of these names and the packages around them, each with its file."""
    for name in dict.fromkeys(names):
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            prefix = ".".join(parts[:length])
            if (spec := find(prefix)) is None:
                break
            # A namespace package has no file.
            if spec.has_location and spec.origin:
                yield prefix, Path(spec.origin)


def finder(folders: Iterable[Path] | None = None) -> Find:
    """Finds modules where this process does, or else in some folders."""

    @cache
    def find(name: str) -> ModuleSpec | None:
        package, _, last = name.rpartition(".")
        if package:
            around = find(package)
            return PathFinder.find_spec(last, list((around and around.submodule_search_locations) or ()))
        return in_process(last) if folders is None else PathFinder.find_spec(last, list(map(str, folders)))

    return find


def in_process(name: str) -> ModuleSpec | None:
    """A top-level module, for which nothing is imported."""
    try:
        return importlib.util.find_spec(name)
    # Such as `__main__`, and what a finder of another package raises.
    except (ImportError, ValueError, AttributeError):
        return None


class OwnFiles:
    """Whether a file is a user's own: below one of some folders, and not installed."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = {path for folder in folders for path in (folder.absolute(), folder.resolve())}
        around = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
        if sys.prefix != sys.base_prefix:
            around.add(Path(sys.prefix))
        # Somebody can keep a project in the folder of its virtual environment.
        self._installed = [
            one for one in around if not any(folder.is_relative_to(one) for folder in self._folders)
        ]

    def __call__(self, file: Path) -> bool:
        if any(file.is_relative_to(folder) for folder in self._installed) or INSTALLED & {*file.parts}:
            return False
        return any(one.is_relative_to(folder) for one in (file, file.resolve()) for folder in self._folders)


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
    return "" if files is None else digest(sorted([name, file_digest(path)] for name, path in files))


def own_files(name: str, base: Path, root: Path) -> list[tuple[str, Path]] | None:
    """The files of a user's agent with the names of its modules; None if it is ours, or none are known."""
    kind, _, command = name.partition(":")
    if kind == "host-command":
        named = named_files(command, base)
        found = [with_imports(files, finder([at]), OwnFiles([root, at])) for files, at in named]
        return [item for each in found for item in each.items()]
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
    ours = Path(__file__).parents[1]
    found = files | with_imports(code, finder(), lambda path: own(path) and not path.is_relative_to(ours))
    return list(found.items())


def files_of_package(name: str, folders: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """The files of a package, code and data, with the names of modules for code."""
    for folder in folders:
        for path in files_of(folder):
            if not any(fnmatch(path.name, test) for test in TESTS):
                parts = path.relative_to(folder).as_posix().removesuffix(".py").split("/")
                yield ".".join([name, *parts]).removesuffix(".__init__"), path


def named_files(command: str, base: Path) -> Iterator[tuple[dict[str, Path], Path]]:
    """The files that a command line names, also by `-m`, and the folder from which they import."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    for option, word in pairwise(["", *words]):
        if (path := base / word).is_file():
            yield {path.name.removesuffix(".py"): path}, path.parent
        elif option == "-m":
            yield dict(files_of_modules([f"{word}.__main__"], finder([base]))), base
