"""Ends an adaptive run once its gates are decided: no further trial begins, and none is stopped."""

from __future__ import annotations

from contextlib import suppress
from statistics import fmean
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError
from pytest_super.gate.stopping import whole_epochs
from pytest_super.gate.verdict import RunGates
from pytest_super.gate.wording import SAVED, SAVED_COST
from pytest_super.store.results import task_and_epoch
from pytest_super.store.run_folder import RunFolder
from pytest_super.store.verdict import write_decided
from pytest_super.words import counted

if TYPE_CHECKING:
    from pytest_super.session.controller.trials import Trials
    from pytest_super.session.run import Run


class EarlyEnd:
    """On the controller of a run with a range of epochs."""

    def __init__(self, run: Run, gates: RunGates, trials: Trials) -> None:
        self._run = run
        self._gates = gates
        self._trials = trials
        self._asked = run.settings.epochs.least - 1
        """The epoch after which the gates were asked last."""
        self._decided = 0
        """The one after which they were decided; 0 if they are not."""

    def ask(self, folder: RunFolder) -> None:
        """Ask the gates after each epoch that has ended since, until they are decided."""
        # Most trials end no epoch, and the names of all that are to come are thousands.
        if self._decided or any(self._trials.to_come_in(self._asked + 1)):
            return
        to_come = self._trials.to_come
        for epoch in whole_epochs(to_come, after=self._asked):
            self._asked = epoch
            if self._gates.is_decided(folder.final(), to_come, epoch):
                # A full disk is told by the trials, which then go on.
                with suppress(InfrastructureError):
                    write_decided(folder.path, epoch, self._run.gateway_token)
                    self._decided = epoch
                return

    def lines(self, folder: RunFolder) -> list[str]:
        """What was saved."""
        if not self._decided:
            return []
        results = {result.name: result for result in folder.final()}
        left = self._trials.selected - results.keys()
        not_needed = sum(task_and_epoch(name)[1] > self._decided for name in left)
        costs = [result.cost_usd for result in results.values() if result.cost_usd is not None]
        cost = SAVED_COST.format(cost=fmean(costs) * not_needed) if costs else ""
        of_all = {"left": not_needed, "trials": counted(len(self._trials.selected), "trial")}
        return [SAVED.format(epochs=counted(self._decided, "epoch"), cost=cost, **of_all)]
