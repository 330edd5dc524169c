"""Finds the scripts that shell text runs."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from itertools import dropwhile
from typing import NamedTuple

from pytest_super.metrics.script_runs.launch import launched, without_prefix
from pytest_super.metrics.script_runs.places import UNKNOWN, join
from pytest_super.metrics.script_runs.shell import commands

# Levels of `eval` and `bash -c`, which a cell could nest beyond the interpreter's stack.
DEPTH = 5


class ScriptRun(NamedTuple):
    path: str
    """As seen from the sandbox's working directory."""
    is_process: bool
    """Whether the script has a process of its own, and not that of the kernel or of a shell."""


class Shell:
    """Follows one shell. All paths are as seen from the sandbox's working directory."""

    def __init__(self, folder: str, *, depth: int = 0) -> None:
        self.folder = folder
        self.runs: list[ScriptRun] = []
        """The scripts that it ran and waited for."""
        self.clones: list[str] = []
        self._previous = folder
        self._started: list[ScriptRun] = []
        self._background: list[ScriptRun] = []
        self._depth = depth

    def read(self, text: str) -> None:
        outer: list[str] = []
        for command in commands(text):
            self.read_words(command.words)
            if command.end == "(":
                outer.append(self.folder)
            elif command.end == ")" and outer:
                self.folder = outer.pop()
            # Not after `&&`, `||` and `|`, because an `&` at the end applies to the whole list.
            if command.end in (";", "\n", "&", ")", ""):
                self._settle(in_background=command.end == "&")

    def read_words(self, words: Sequence[str]) -> None:
        words = without_prefix(words)
        match words:
            case ["cd" | "pushd" | "popd" as name, *rest]:
                self._change_folder(name, [word for word in rest if not word.startswith("-") or word == "-"])
            case ["git", "clone", *rest] if any("/" in word for word in rest):
                self._clone(rest)
            case ["wait", *_]:
                self.runs += self._background
            case [_, *_]:
                self._launch(words)

    def _settle(self, *, in_background: bool) -> None:
        (self._background if in_background else self.runs).extend(self._started)
        self._started = []

    def _change_folder(self, name: str, targets: list[str]) -> None:
        target = targets[0] if targets else "~"
        folder = self._previous if name == "popd" or target == "-" else join(self.folder, target)
        self._previous, self.folder = self.folder, folder

    def _clone(self, words: Sequence[str]) -> None:
        # Options come before the URL, which is the first word with a slash.
        url, *after = dropwhile(lambda word: "/" not in word, words)
        name = posixpath.basename(url.rstrip("/")).removesuffix(".git")
        has_folder = bool(after) and not after[0].startswith("-")
        self.clones.append(join(self.folder, after[0] if has_folder else name))

    def _launch(self, words: Sequence[str]) -> None:
        launch = launched(words)
        if launch is None:
            return
        if launch.kind == "shell":
            self._read_inner(launch.text)
        elif launch.kind == "script":
            run = ScriptRun(join(self.folder, launch.text), words[0] not in ("source", "."))
            self._started.append(run)
        else:
            self._started += [ScriptRun(path, True) for path in module_paths(launch.text)]

    def _read_inner(self, text: str) -> None:
        if self._depth < DEPTH:
            inner = Shell(self.folder, depth=self._depth + 1)
            inner.read(text)
            self._started += inner.runs


def module_paths(name: str) -> list[str]:
    """The files that can be the module: a file or a package's main module, in an unknown folder."""
    path = posixpath.join(UNKNOWN, *name.split("."))
    return [f"{path}.py", f"{path}/__main__.py"]
