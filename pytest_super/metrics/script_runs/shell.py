"""Finds the scripts that shell text runs, and not only mentions."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_super.metrics.script_runs.launch import launched, without_prefix
from pytest_super.metrics.script_runs.places import UNKNOWN, join

# Longer operators first, because the first alternative that matches wins.
_OPERATOR = re.compile(r"&&|\|\||;;|\|&|<<<|<<-?|>>|&>>?|[<>]&|[;&|()<>\n]")
_PLAIN = re.compile(r"[^\s\\'\";&|()<>]+")
_COMMENT = re.compile(r"#[^\n]*")
_SINGLE = re.compile(r"'([^']*)(?:'|\Z)")
_DOUBLE = re.compile(r'"((?:\\.|[^"\\])*)(?:"|\\?\Z)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.?)", re.DOTALL)

_HEREDOC = ("<<", "<<-")
_REDIRECTIONS = ("<", ">", ">>", "<<<", "&>", "&>>", "<&", ">&", *_HEREDOC)


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """The words of a simple command, without quotes and redirections, and the operator that ends it."""

    words: tuple[str, ...]
    end: str


def commands(text: str) -> Iterator[SimpleCommand]:
    """The simple commands in order. `(` and `)` also end a command, possibly an empty one. Never raises."""
    words: list[str] = []
    heredocs: list[str] = []
    redirection = ""
    lexer = _Lexer(text)
    for token, is_operator in lexer:
        if is_operator and token in _REDIRECTIONS:
            redirection = token
        elif is_operator:
            yield SimpleCommand(tuple(words), token)
            words, redirection = [], ""
            if token == "\n":
                lexer.skip_heredocs(heredocs)
        elif redirection:
            heredocs.extend([token] if redirection in _HEREDOC else [])
            redirection = ""
        else:
            words.append(token)
    yield SimpleCommand(tuple(words), "")


class _Lexer:
    """Yields (token, whether it is an operator)."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\\\n", "")
        self._at = 0
        self._word: str | None = None

    def __iter__(self) -> Iterator[tuple[str, bool]]:
        while self._at < len(self._text):
            char = self._text[self._at]
            operator = _OPERATOR.match(self._text, self._at)
            # Within a word `#` is text, as in `git+https://example.org/x#egg=x`.
            if operator or char.isspace() or (char == "#" and self._word is None):
                yield from self._take_word(before=operator[0] if operator else "")
                comment = _COMMENT.match(self._text, self._at) if char == "#" else None
                found = operator or comment
                self._at = found.end() if found else self._at + 1
                if operator:
                    yield operator[0], True
            else:
                self._word = (self._word or "") + self._read_part(char)
        yield from self._take_word(before="")

    def _take_word(self, *, before: str) -> Iterator[tuple[str, bool]]:
        # In `2>&1` the 2 is not a word.
        if self._word is not None and not (before in _REDIRECTIONS and self._word.isdigit()):
            yield self._word, False
        self._word = None

    def _read_part(self, char: str) -> str:
        pattern = {"'": _SINGLE, '"': _DOUBLE, "\\": _ESCAPED}.get(char, _PLAIN)
        match = pattern.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        if pattern is _PLAIN:
            return match[0]
        if pattern is _DOUBLE:
            # Within double quotes, the shell removes the backslash only before these.
            return re.sub(r'\\(["\\$`])', r"\1", match[1])
        return match[1]

    def skip_heredocs(self, delimiters: list[str]) -> None:
        for delimiter in delimiters:
            end = re.compile(rf"^\t*{re.escape(delimiter)}$", re.MULTILINE).search(self._text, self._at)
            self._at = min(end.end() + 1, len(self._text)) if end else len(self._text)
        delimiters.clear()


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
