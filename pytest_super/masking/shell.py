"""What shell lines read, write and install, as far as it can be told from their words."""

from __future__ import annotations

import posixpath
import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_super.masking.files import ANY, LONGEST, clean, downloaded, is_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

READERS = frozenset({
    "cat", "ls", "head", "tail", "grep", "egrep", "zgrep", "wc", "find", "echo", "printf", "cut",
    "sort", "uniq", "diff", "file", "stat", "du", "df", "pwd", "which", "nvidia-smi", "free", "tree",
    "less", "more", "nl", "tr", "sed", "awk", "md5sum", "sha256sum", "true", "test", "date", "column",
    "lscpu", "nproc", "od",
})  # fmt: skip
WRITERS = frozenset({
    "rm", "mv", "cp", "mkdir", "rmdir", "touch", "tee", "ln", "chmod", "patch", "split", "gzip",
    "truncate", "rsync", "dos2unix", "wget", "curl", "git", "gdown", "tar", "unzip", "gunzip", "7z",
})  # fmt: skip
# They make files whose names do not stand on the line.
UNPACKERS = frozenset({"tar", "unzip", "gunzip", "7z", "git", "gdown"})
INSTALLERS = frozenset({"pip", "pip3", "conda", "mamba", "apt", "apt-get", "uv"})
QUIET_GIT = frozenset({"log", "status", "diff", "show", "branch", "rev-parse"})
STARTERS = frozenset({"sudo", "xargs", "time"})
INSTALLS = frozenset({"install", "uninstall", "remove", "update", "upgrade", "add"})
# What a distribution is imported as, where the names differ. What is installed on this machine is not asked:
# it must not decide which cells a task pre-executes.
IMPORT_NAMES = {
    "scikit-learn": "sklearn",
    "scikit-image": "skimage",
    "opencv-python": "cv2",
    "opencv-python-headless": "cv2",
    "pillow": "PIL",
    "pyyaml": "yaml",
    "beautifulsoup4": "bs4",
    "python-crfsuite": "pycrfsuite",
}

_OPERATOR = re.compile(r"[;&|<>()]+")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
# Options, numbers, and what has white space or signs of a regular expression.
_NO_PATH = re.compile(r"^-|^\d+$|[\s\\|^()]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


@dataclass
class ShellEffects:
    """Of shell text. Paths as in `files`."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    installs: set[str] = field(default_factory=set)
    """Names under which what is installed is imported; ANY where they are not known."""
    runs: bool = False
    """Runs a program of which no more is known: it may read and write any file and import any package."""


def shell_effects(text: str) -> ShellEffects:
    """Any text is read; what is not understood counts as a program that is run."""
    effects = ShellEffects()
    folder = ""
    for line in text.replace("\\\n", " ").splitlines():
        for pipeline in pipelines(line):
            folder = Pipeline(pipeline, folder, effects).read()
    return effects


def pipelines(line: str) -> Iterator[list[str]]:
    """The words and operators of each pipeline on a line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|<>()")
    lexer.whitespace_split = True
    # Within a word it is no comment, and what stands in a comment does no harm.
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        # An open quote: the text goes on on another line.
        words = ["sh", line]
    found: list[str] = []
    for word in words:
        if word in ("&&", "||", ";", "&", "(", ")"):
            yield found
            found = []
        else:
            found.append(word)
    yield found


class Pipeline:
    """Commands that work on each other's output: what one of them writes may be named on another."""

    def __init__(self, words: Sequence[str], folder: str, effects: ShellEffects) -> None:
        self.folder = folder
        self.effects = effects
        self.targets: list[str] = []
        self.commands: list[list[str]] = [[]]
        self.split(words)

    def split(self, words: Sequence[str]) -> None:
        redirection = ""
        for word in words:
            if redirection:
                if ">" in redirection and not word.isdigit():
                    self.targets.append(word)
                elif "<" in redirection:
                    self.commands[-1].append(word)
                redirection = ""
            elif not _OPERATOR.fullmatch(word):
                self.commands[-1].append(word)
            elif "|" in word:
                self.commands.append([])
            else:
                redirection = word

    def read(self) -> str:
        """Notes what the commands do; gives the folder in which the next ones run."""
        self.effects.writes |= {self.place(word) for word in self.targets} - {"/dev/null"}
        commands = [bare(words) for words in self.commands]
        named = [self.place(word) for words in commands for word in words[1:] if may_name(word)]
        for words in filter(None, commands):
            if words[0] in ("cd", "pushd"):
                return posixpath.join(self.folder, words[1]) if len(words) > 1 else ""
            self.command(words, named)
        self.effects.reads.update(named)
        return self.folder

    def place(self, word: str) -> str:
        return downloaded(word) if is_url(word) else clean(word, self.folder)

    def command(self, words: list[str], named: list[str]) -> None:
        name = posixpath.basename(words[0])
        if name in INSTALLERS or words[:2] == ["-m", "pip"]:
            self.install(words)
        elif writes(name, words):
            self.effects.writes.update(named or [ANY])
            if name in UNPACKERS and "clone" not in words:
                self.effects.writes.add(clean(f"{self.folder}/*") if self.folder else ANY)
        elif name not in READERS:
            self.effects.runs = True

    def install(self, words: list[str]) -> None:
        if not INSTALLS.intersection(words):
            return
        start = words.index("install") + 1 if "install" in words else len(words)
        packages = [word for word in words[start:] if not word.startswith("-")]
        names = {imported_as(word) for word in packages}
        self.effects.installs |= names or {ANY}


def bare(words: Sequence[str]) -> list[str]:
    """Without assignments in front, and without what only starts the command in its arguments."""
    start = 0
    while start < len(words) and (_ASSIGNMENT.fullmatch(words[start]) or words[start] in STARTERS):
        start += 1
    rest = list(words[start:])
    if len(rest) > 2 and rest[1:3] == ["-m", "pip"]:
        return rest[2:]
    return rest


def may_name(word: str) -> bool:
    return len(word) <= LONGEST and not _NO_PATH.search(word)


def writes(name: str, words: Sequence[str]) -> bool:
    if name == "sed":
        return any(word.startswith(("-i", "--in-place")) or re.fullmatch(r"-\w*i\w*", word) for word in words)
    if name == "find":
        return not {"-delete", "-exec", "-execdir"}.isdisjoint(words)
    if name == "sort":
        return any(re.match(r"-\w*o|--output", word) for word in words)
    if name == "awk":
        return any(">" in word for word in words)
    if name == "uniq":
        return len([word for word in words[1:] if not word.startswith("-")]) > 1
    if name == "git" and len(words) > 1 and words[1] in QUIET_GIT:
        return False
    return name in WRITERS


def imported_as(requirement: str) -> str:
    """The name of the module, as far as it can be told from a requirement; ANY of a file or a folder."""
    match = _NAME.match(requirement)
    if match is None or "/" in requirement or requirement.endswith(".txt"):
        return ANY
    name = re.sub(r"[-_.]+", "-", match[0]).lower()
    return IMPORT_NAMES.get(name, name.replace("-", "_"))
