"""The history of a git repository: the versions of its files on all branches and tags, and its messages."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_super.sources.git import ALL, git_bytes, run_git
from pytest_super.sources.store import workshop

# `:` old mode, new mode, old blob, new blob, status, tab, path: one change of a regular file.
_CHANGE = re.compile(r":\d{6} 100\d{3} [0-9a-f]+ ([0-9a-f]+) [A-Z]\d*\t(.*)")
_COMMIT = re.compile(r"@([0-9a-f]+) of (\d{4}-\d\d-\d\d)")
# Of a commit's hash these characters are shown. git's own abbreviations differ between two copies.
SHOWN = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class FileVersion:
    """The content of a file since one commit."""

    blob: str
    path: str
    commit: str
    """The first commit that has it: the beginning of its hash, and its date."""


class History:
    """All branches and tags of a repository. Its methods raise InfrastructureError."""

    def __init__(self, bare: Path) -> None:
        self._bare = bare

    def files(self) -> list[FileVersion]:
        """Each content once, the newest ones first."""
        # By their first parents, merges show what they change themselves, too.
        options = ("--raw", "--no-abbrev", "--no-renames", "--root", "--diff-merges=first-parent")
        log = self._git("-c", "core.quotePath=false", "log", "--all", *options, "--format=@%H of %as")
        found: dict[str, FileVersion] = {}
        commit = ""
        for line in log.decode("utf-8", "replace").split("\n"):
            if match := _COMMIT.fullmatch(line):
                commit = f"{match[1][:SHOWN]} of {match[2]}"
            elif (match := _CHANGE.fullmatch(line)) and match[2].isprintable():
                # Later lines are of older commits.
                found[match[1]] = FileVersion(blob=match[1], path=match[2], commit=commit)
        return list(found.values())

    def sizes(self, files: Iterable[FileVersion]) -> dict[str, int]:
        """The bytes of each content, by blob."""
        form = "--batch-check=%(objectname) %(objectsize)"
        lines = self._git("cat-file", form, input=names_of(files)).decode().split("\n")
        return {blob: int(size) for blob, size in (line.split() for line in lines if line)}

    def read(self, files: Iterable[FileVersion]) -> Iterator[bytes]:
        """The contents, in the same order."""
        found = self._git("cat-file", "--batch", input=names_of(files))
        start = 0
        while start < len(found):
            # A line with the size, then the content and a line break.
            begin = found.index(b"\n", start) + 1
            end = begin + int(found[start:begin].split()[2])
            yield found[begin:end]
            start = end + 1

    def messages(self) -> Iterator[tuple[str, str]]:
        """Each commit, as the beginning of its hash and its date, with its message."""
        log = self._git("log", "--all", "--format=%H of %as%n%B", "-z").decode("utf-8", "replace")
        for entry in log.split("\0"):
            commit, _, message = entry.partition("\n")
            name, _, date = commit.partition(" of ")
            yield f"{name[:SHOWN]} of {date}", message

    def _git(self, *arguments: str, input: bytes = b"") -> bytes:
        return git_bytes(f"--git-dir={self._bare}", *arguments, cwd=self._bare, input=input)


def names_of(files: Iterable[FileVersion]) -> bytes:
    return "".join(f"{file.blob}\n" for file in files).encode()


@contextmanager
def fetched_history(url: str, *, base: Path, cache: Path) -> Iterator[History]:
    """The history while it is used; a relative URL starts at `base`. Raises InfrastructureError."""
    with workshop(cache) as work:
        bare = work / "bare"
        run_git("init", "--quiet", "--bare", "--template=", str(bare), cwd=base)
        fetch = (f"--git-dir={bare}", "fetch", "--quiet", "--no-recurse-submodules")
        run_git(*fetch, "--", url, *ALL, cwd=base)
        yield History(bare)
