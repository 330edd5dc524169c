"""Writes the page of a run at its end, for `--super-html`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
        """Raises InfrastructureError if the page cannot be written."""
        from pytest_super.report.page.one_file import write_page

        try:
            yield
        finally:
            write_page(self._page, self._folder)
