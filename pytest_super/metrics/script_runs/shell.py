"""Finds the scripts that shell text runs, and not only mentions."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_super.metrics.script_runs.launch import launched, without_prefix
from pytest_super.metrics.script_runs.places import UNKNOWN, join

# Longer operators first, because the first alternative that matches wins. In `2>&1` the 2 is not a word, and
# within a word `#` is text, as in `git+https://example.org/x#egg=x`.
_TOKEN = re.compile(
    r"""
    (?P<redirection>\d*(?:<<<|<<-?|>>|[<>]&|[<>])|&>>?)
    | (?P<operator>&&|\|\||;;|\|&|[;&|()\n])
    | (?P<blank>[^\S\n]++|\#[^\n]*+)
    | (?P<word>(?:[^\s\\'";&|()<>]|\\(?:.|\Z)|'[^']*+(?:'|\Z)|"(?:\\.|[^"\\])*+(?:"|\\?\Z))++)
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r"""'([^']*)'?|"((?:\\.|[^"\\])*)(?:"|\\?\Z)|\\(.?)""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """The words of a simple command, without quotes and redirections, and the operator that ends it."""

    words: tuple[str, ...]
    end: str


def commands(text: str) -> Iterator[SimpleCommand]:
    """The simple commands in order. `(` and `)` also end a command, possibly an empty one. Never raises."""
    text, at = text.replace("\\\n", ""), 0
    words: list[str] = []
    heredocs: list[str] = []
    redirection = ""
    while found := _TOKEN.match(text, at):
        at = found.end()
        if found["redirection"]:
            redirection = found[0].lstrip("0123456789")
        elif found["operator"]:
            yield SimpleCommand(tuple(words), found[0])
            words, redirection = [], ""
            if found[0] == "\n":
                at = after_heredocs(text, at, heredocs)
                heredocs = []
        elif found["word"]:
            word = _QUOTED.sub(unquoted, found[0])
            if not redirection:
                words.append(word)
            elif redirection in ("<<", "<<-"):
                heredocs.append(word)
            redirection = ""
    yield SimpleCommand(tuple(words), "")


def unquoted(found: re.Match[str]) -> str:
    # Within double quotes, the shell removes the backslash only before these.
    return found[1] or re.sub(r'\\(["\\$`])', r"\1", found[2] or "") or found[3] or ""


def after_heredocs(text: str, at: int, delimiters: Sequence[str]) -> int:
    for delimiter in delimiters:
        end = re.compile(rf"^\t*{re.escape(delimiter)}$", re.MULTILINE).search(text, at)
        at = min(end.end() + 1, len(text)) if end else len(text)
    return at


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
                (self._background if command.end == "&" else self.runs).extend(self._started)
                self._started = []

    def read_words(self, words: Sequence[str]) -> None:
        words = without_prefix(words)
        match words:
            case ["cd" | "pushd" | "popd" as name, *rest]:
                targets = [word for word in rest if not word.startswith("-") or word == "-"]
                target = targets[0] if targets else "~"
                folder = self._previous if name == "popd" or target == "-" else join(self.folder, target)
                self._previous, self.folder = self.folder, folder
            case ["wait", *_]:
                self.runs += self._background
            case [_, *_]:
                self._launch(words)

    def _launch(self, words: Sequence[str]) -> None:
        launch = launched(words)
        if launch is None:
            return
        if launch.kind == "shell":
            if self._depth < DEPTH:
                inner = Shell(self.folder, depth=self._depth + 1)
                inner.read(launch.text)
                self._started += inner.runs
        elif launch.kind == "script":
            self._started.append(ScriptRun(join(self.folder, launch.text), words[0] not in ("source", ".")))
        else:
            self._started += [ScriptRun(path, True) for path in module_paths(launch.text)]


def module_paths(name: str) -> list[str]:
    """The files that can be the module: a file or a package's main module, in an unknown folder."""
    path = posixpath.join(UNKNOWN, *name.split("."))
    return [f"{path}.py", f"{path}/__main__.py"]
