"""The workers of xdist: what the controller tells them, and what becomes of the trial of one that died."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.providers.registry import find_provider
from pytest_super.session.controller.controller import Controller
from pytest_super.session.run import HINTS, REFUSED
from pytest_super.session.trial.models import RELAY, running_gateway
from pytest_super.session.trial.reported_outcome import REQUEUED, is_task, trial_of, trouble_after
from pytest_super.store.results import TrialResult

MAX_RERUNS = 1
"""A trial whose worker died is run once more. A second death is an error."""


class Workers:
    """Registered on the controller, with and without xdist."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.run = controller.run
        self.hints: list[str] = []
        self.deaths: Counter[str] = Counter()
        """By item: how many workers have died in it."""
        self.has_lost_one = False

    # optionalhook: with `-p no:xdist` pytest does not know the hook.
    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Raises pytest.UsageError."""
        node.workerinput["super"] = self.run.to_worker()
        # The workers of `-n` are on this machine.
        if not node.config.option.numprocesses:
            self.prepare(node)

    def prepare(self, node: Any) -> None:
        """Let a worker that can be anywhere reach the run's gateway. Raises pytest.UsageError."""
        # Not at the top, for the many runs without such workers.
        from pytest_super.model.relay import Relay, place
        from pytest_super.session.workers.machine_check import refuse_unfit

        refuse_unfit(node, self.run)
        relay = Relay(node.gateway, partial(running_gateway, self.controller.config, self.run))
        node.workerinput[RELAY] = relay.channel, place()

    # First, because the hook ends with the plugin that makes the report.
    @pytest.hookimpl(tryfirst=True)
    def pytest_report_from_serializable(self, data: dict[str, Any]) -> None:
        """Runs in the threads that read from workers.

        Pytest keeps all reports. A connection makes each text anew, also the names of fields: with equal ones
        shared, a trial takes half of the memory.
        """
        if is_task(data.get("nodeid", "")):
            fields = shared(data)
            # An equal key would stay.
            data.clear()
            data.update(fields)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Share the ids of the items, too, which xdist keeps for each worker."""
        ids[:] = shared(ids)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """Take the hints of any worker: all collect the same. Raises pytest.UsageError if one refused."""
        self.has_lost_one |= error is not None
        output = getattr(node, "workeroutput", {})
        if REFUSED in output:
            raise pytest.UsageError(output[REFUSED])
        self.hints = output.get(HINTS, self.hints)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any, sched: Any) -> None:
        """Run a trial whose worker died once more, unless it was over, before its crash is reported."""
        if is_task(crashitem):
            self.deaths[crashitem] += 1
            folder = self.controller.folder
            known = folder.ended_result(trial_of(crashitem)) if folder else None
            if is_run_again(report, self.deaths[crashitem], known):
                sched.mark_test_pending(crashitem)
        if self.run.settings.epochs.is_adaptive:
            # xdist puts what the worker had in advance last; epochs end one after the other.
            sched.pending.sort()

    # Wrappers end after other hooks, here after xdist has ended its workers.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self) -> Generator[None]:
        try:
            return (yield)
        finally:
            if self.has_lost_one and self.run.sandbox:
                # If the engine is gone, the next run removes what is left.
                with suppress(InfrastructureError):
                    find_provider(self.run.sandbox).sweep()


def shared(value: Any) -> Any:
    """The JSON value with texts that all equal ones share."""
    if isinstance(value, str):
        return sys.intern(value)
    if isinstance(value, dict):
        return {sys.intern(key): shared(child) for key, child in value.items()}
    if isinstance(value, list):
        return [shared(child) for child in value]
    return value


def is_run_again(report: Any, deaths: int, known: TrialResult | None) -> bool:
    """Whether a trial that has lost `deaths` workers is run again. Its report is changed accordingly."""
    if known is not None:
        # The trial is over. Run again, a miss would become the better one of two tries.
        report.when = "teardown"
        report.longrepr = "the process that had run it died"
        report.super_trouble = trouble_after(known, report.longrepr)
        return False
    if deaths > MAX_RERUNS:
        return False
    # Neither passed nor failed, so a crash counts only if the rerun fails too.
    report.outcome = REQUEUED
    return True
