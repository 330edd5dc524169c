"""Reads the files of an untrusted repository: regular files only, up to a limit, without following links."""

import codecs
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath

# Bytes of one file, and of all files of one search.
LONGEST_FILE = 2**20
MOST_READ = 64 * 2**20
# Most files of a repository that are listed.
MOST_FILES = 20_000
SCRIPTS = (".py", ".sh", ".bash")
README = re.compile(r"readme(\.(md|markdown|rst|txt))?", re.IGNORECASE)
_SHEBANG = re.compile(rb"#![^\n]*\b(python[\d.]*|(ba|da|z|k)?sh)\b")
# Control characters, characters that change the text direction, surrogates, the byte order mark.
_INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


@dataclass(frozen=True)
class Tree:
    """The folder of a repository; paths are relative to it, with slashes."""

    root: Path

    @cached_property
    def files(self) -> list[str]:
        """Regular files, those near the top first; without .git and names that are not printable."""
        found = islice(self._walk(), MOST_FILES)
        return sorted(found, key=lambda path: (path.count("/"), path))

    @cached_property
    def scripts(self) -> list[str]:
        return [path for path in self.files if path.endswith(SCRIPTS)]

    def _walk(self) -> Iterator[str]:
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(name for name in folders if name != ".git" and name.isprintable())
            for name in sorted(names):
                path = Path(folder, name)
                if name.isprintable() and os.path.isfile(path) and not path.is_symlink():
                    yield path.relative_to(self.root).as_posix()

    def read(self, path: str, most: int = LONGEST_FILE) -> bytes:
        """The beginning of a file in the tree; b"" if it cannot be read."""
        try:
            with (self.root / path).open("rb") as file:
                return file.read(most)
        except OSError:
            return b""

    def contents(self, suffixes: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
        """Paths and contents of the files with one of these suffixes, until MOST_READ bytes are read."""
        left = MOST_READ
        for path in self.files:
            if path.endswith(suffixes) and left > 0:
                data = self.read(path, min(left, LONGEST_FILE))
                left -= len(data)
                yield path, data

    @cached_property
    def readme(self) -> str:
        """The text of the top-level README, with its markup; "" if there is none."""
        names = sorted((name for name in self.files if README.fullmatch(name)), key=rank)
        texts = (legible(self.read(name)).strip() for name in names)
        return next(filter(None, texts), "")

    def is_script(self, path: str) -> bool:
        """Whether the file is a Python or shell script: by its suffix, or without one by its first line."""
        if PurePosixPath(path).suffix:
            return path.endswith(SCRIPTS)
        return _SHEBANG.match(self.read(path, 200)) is not None


def rank(name: str) -> tuple[int, str]:
    """Sort key of READMEs: Markdown first, because the others are often generated from it."""
    suffixes = (".md", ".markdown", ".rst", ".txt", "")
    return suffixes.index(PurePosixPath(name.lower()).suffix), name


def legible(data: bytes) -> str:
    """Any bytes as text without invisible characters."""
    is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = data.decode("utf-16" if is_utf16 else "utf-8-sig", "replace")
    return _INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
