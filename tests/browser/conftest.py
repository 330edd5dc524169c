"""A Chromium of the system, and pages in it."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_super.store.run_folder import RunFolder

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    # GitHub's machines have the second.
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        reason = "Chromium is not installed: install Debian's package `chromium`"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    # Not at the top: the other tests do not need it.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        yield browser
        browser.close()


@contextmanager
def served(*runs: Path) -> Iterator[str]:
    """The address of a server for these runs."""
    from pytest_super.report.page.server import PageServer

    with PageServer(runs) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.url
        finally:
            server.shutdown()
            thread.join()


def write_file(run: RunFolder, page: Path) -> str:
    """The page of the run as one file; its address."""
    from pytest_super.report.page.render import write_page

    write_page(page, run.path)
    return page.as_uri()
