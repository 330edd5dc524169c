"""Which files of the working directory change between the steps of a trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.cell import SandboxLostError

if TYPE_CHECKING:
    from pytest_super.kernel.client import Kernel


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
