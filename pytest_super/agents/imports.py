"""The modules that Python code imports, at any depth, read from its source without running it.

So a module counts that is imported only in a trial, and none that another test happens to have imported.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
)
from pathlib import Path

Find = Callable[[str], ModuleSpec | None]
"""Finds a module by its name."""

LOADERS = ((SourceFileLoader, SOURCE_SUFFIXES), (ExtensionFileLoader, EXTENSION_SUFFIXES))
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
            yield from name_of_call(node)


def names_from(node: ast.ImportFrom, package: str) -> Iterator[str]:
    parts = package.split(".")
    above = parts[: len(parts) - node.level + 1] if node.level else []
    base = ".".join([*above, *filter(None, [node.module])])
    yield base
    yield from (f"{base}.{alias.name}" for alias in node.names)


def name_of_call(node: ast.Call) -> Iterator[str]:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called in IMPORTING and node.args and isinstance(node.args[0], ast.Constant):
        yield str(node.args[0].value)


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
            return in_folders(last, (around and around.submodule_search_locations) or ())
        return in_process(last) if folders is None else in_folders(last, map(str, folders))

    return find


def in_process(name: str) -> ModuleSpec | None:
    """A top-level module, for which nothing is imported."""
    try:
        return importlib.util.find_spec(name)
    # Such as `__main__`, and what a finder of another package raises.
    except (ImportError, ValueError, AttributeError):
        return None


def in_folders(name: str, folders: Iterable[str]) -> ModuleSpec | None:
    """The module of the first folder that has it; without one, the namespace package of all of them."""
    found = [spec for folder in folders if (spec := FileFinder(folder, *LOADERS).find_spec(name))]
    for spec in found:
        if spec.loader is not None:
            return spec
    if not found:
        return None
    namespace = ModuleSpec(name, None, is_package=True)
    namespace.submodule_search_locations = [
        folder for spec in found for folder in spec.submodule_search_locations or ()
    ]
    return namespace


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
