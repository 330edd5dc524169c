"""The script that the agent is to run, as its repository and the recorded edits made it."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from pytest_super.kernel.cell import SandboxLostError

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        self._name = path
        self._path = path if repository is None else f"{repository}/{path}"
        self._expected = self._read()
        if self._expected is None:
            self._path = path
            self._expected = self._read()
        self._tell()

    @contextmanager
    def editing(self) -> Iterator[None]:
        """Around an edit: if the script is as expected before it, it is so after it."""
        was_expected = self._expected is not None and self._read() == self._expected
        yield
        if was_expected:
            self._expected = self._read()
            self._tell()

    def _read(self) -> bytes | None:
        with suppress(OSError, SandboxLostError):
            return self._kernel.read_file(f"{self._kernel.workdir}/{self._path}", LONGEST)
        return None

    def _tell(self) -> None:
        if self._expected is not None:
            self._kernel.expect_script(self._name, self._expected)
