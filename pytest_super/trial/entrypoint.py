"""The script that the agent is to run, as its repository and the recorded edits made it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.cell import SandboxLostError

if TYPE_CHECKING:
    from pytest_super.kernel.client import Kernel


# Longer files are compared with nothing.
LONGEST = 2**20


class EntrypointScript:
    """Tells the sandbox what the script should look like, so that it sees when another one is run.

    The agent's cells can change the file too: that is what a reader of the result should know. Changes by its
    recorded edits need no mark.
    """

    def __init__(self, kernel: Kernel, path: str, repository: str | None) -> None:
        """`path` is that of the task. Call this before the agent acts."""
        self._kernel = kernel
        self._expected: bytes | None = None
        for name, place in self._places(path, repository):
            self._name, self._path = name, place
            self._expected = self._read()
            if self._expected is not None:
                break
        self._tell()

    @contextmanager
    def editing(self) -> Iterator[None]:
        """Around an edit: if the script is as expected before it, it is so after it."""
        was_expected = self._expected is not None and self._read() == self._expected
        yield
        if was_expected:
            self._expected = self._read()
            self._tell()

    def _places(self, path: str, repository: str | None) -> Iterator[tuple[str, str]]:
        """Where the script can be: its path in the repository, and in the working directory."""
        if repository is not None:
            yield path, f"{repository}/{path}"
            if "/" not in path and (found := self._only(path, repository)) is not None:
                yield found, f"{repository}/{found}"
        yield path, path

    def _only(self, name: str, repository: str) -> str | None:
        """The path in the repository of its only file of this name; None if there are others or none."""
        with suppress(OSError, SandboxLostError):
            files = self._kernel.files.search(f"{self._kernel.workdir}/{repository}", name=escape(name))
            if files.is_complete and files.files == 1:
                return files.found[0][0]
        return None

    def _read(self) -> bytes | None:
        with suppress(OSError, SandboxLostError):
            return self._kernel.files.read(f"{self._kernel.workdir}/{self._path}", LONGEST)
        return None

    def _tell(self) -> None:
        self._kernel.expect_script(self._name, self._expected or b"")


class FileWatch:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._has_begun = self._has_failed = False

    def begin(self) -> None:
        """Look for the first time. Later calls do nothing."""
        if not self._has_begun:
            self._has_begun = True
            self.changes()

    def changes(self) -> dict[str, str] | None:
        """Since the last look, as of SandboxFiles.changes; None if that is not known."""
        if self._has_failed:
            return None
        try:
            found = self._kernel.files.changes(self._kernel.workdir)
        except (OSError, SandboxLostError, InfrastructureError):
            found = None
        # Where looking takes too long once, it does each time.
        self._has_failed = found is None
        return found
