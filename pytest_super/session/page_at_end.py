"""Writes the page of a run at its end, for `--super-html`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_super.errors import SuperError
from pytest_super.words import words_of

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


class PageAtEnd:
    """On the controller of a run with --super-html."""

    def __init__(self, folder: Path, page: Path) -> None:
        self._folder = folder
        self._page = page

    # A wrapper, so that a hook that raises keeps neither the page nor other hooks from their turn.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_super_run_finished(self) -> Generator[None]:
        """Raises InfrastructureError if the page cannot be written, beside what another hook raised."""
        try:
            yield
        except BaseException as error:
            self._write_after(error)
            raise
        self._write()

    def _write(self) -> None:
        from pytest_super.report.page.one_file import write_page

        write_page(self._page, self._folder)

    def _write_after(self, error: BaseException) -> None:
        try:
            self._write()
        except Exception as another:
            raise SuperError(f"{words_of(error)}; {words_of(another)}") from error
