"""Runs a trial again without recorded answers, if the provider does not accept what is sealed in them.

Such are encrypted thoughts, which a client sends back with its next request: a provider can refuse those of
another account, or old ones. The agent cannot help it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.errors import SuperError
from pytest_super.session.item import RESULT, STORED
from pytest_super.session.outcome import REQUEUED
from pytest_super.session.run import RUN
from pytest_super.store.answers import FILE, read_answers

if TYPE_CHECKING:
    from collections.abc import Generator


IS_REFUSED = pytest.StashKey[bool]()
"""Whether the provider has refused what is sealed in recorded answers in the item's last run."""


class UncoupledReruns:
    """Registered where trials get recorded answers, in the process that runs them."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, Any, Any]:
        is_done = yield
        if item.stash.get(IS_REFUSED, False):
            is_done = item.ihook.pytest_runtest_protocol(item=item, nextitem=nextitem)
        return is_done

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.when != "teardown":
            item.stash[IS_REFUSED] = report.when == "call" and is_refused(item)
        is_trouble = report.when == "teardown" and report.failed
        if item.stash[IS_REFUSED] and not is_trouble:
            # Neither passed nor failed: the second run decides.
            report.outcome = REQUEUED  # type: ignore[assignment]
        return report


def is_refused(item: pytest.Item) -> bool:
    result = item.stash.get(RESULT, None)
    if result is None or not result.recorded or STORED in item.stash:
        return False
    try:
        return read_answers(item.config.stash[RUN].path / result.folder / FILE).has_refused_seal
    except SuperError:
        # What has damaged the record has ended the trial, too.
        return False
