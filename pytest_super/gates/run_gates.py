"""The gates of one run: what they plan, whether they are decided, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_super.gates.baseline import BaselineGate, verdict_of
from pytest_super.gates.figures import why_invalid
from pytest_super.gates.plan import RunPlan
from pytest_super.gates.stopping import are_settled
from pytest_super.gates.verdict import GateVerdict, RunVerdict
from pytest_super.gates.wording import CANNOT_TELL, FAILED, FIGURES_INVALID, NOT_ALL_ENDED, OPEN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pytest_super.gates.verdict import Gate
    from pytest_super.metrics import Metric
    from pytest_super.option_types import Epochs
    from pytest_super.store.results import TrialResult


@dataclass(frozen=True, kw_only=True)
class RunGates:
    """Decides a run; one without gates by its trials alone."""

    epochs: Epochs
    plain: Sequence[Gate] = ()
    metrics: Sequence[Metric] = ()
    baseline: BaselineGate | None = None
    max_errors: float | None = None
    """The share of the trials that can be errors; None if any error fails the run."""

    def plan(self, ids: Collection[str]) -> RunPlan:
        """How often each of these tasks runs at most. Called before the first trial."""
        if self.baseline is not None:
            return self.baseline.plan(ids, self.epochs)
        return RunPlan(epochs=dict.fromkeys(ids, self.epochs.most), least=self.epochs.least)

    def is_decided(self, results: Sequence[TrialResult], to_come: Collection[str], epoch: int) -> bool:
        """Whether the run can end after this epoch. `to_come` has the names of the trials to come."""
        if self.baseline is not None:
            comparison, _ = self.baseline.compared(results, epoch)
            if comparison is None or comparison.verdict == CANNOT_TELL:
                return False
        return are_settled(self.plain, self.metrics, results, to_come, self.max_errors)

    def verdict(self, results: Sequence[TrialResult], *, not_run: int, epoch: int) -> RunVerdict:
        """Of a run that has ended, by the last result of each trial.

        `not_run` is the number of trials that did not begin, `epoch` the last one that the comparison counts.
        """
        # A gate is for all trials.
        is_open = bool(not_run) or any(one.is_interrupted for one in results)
        invalid = why_invalid(results, self.max_errors)
        comparison, why_not_compared = None, ""
        gates = list(self._plain_verdicts(results, is_open=is_open, is_valid=not invalid))
        if self.baseline is not None:
            if not is_open:
                comparison, why_not_compared = self.baseline.compared(results, epoch)
            gates.append(GateVerdict(OPEN, NOT_ALL_ENDED) if is_open else verdict_of(comparison))
        allows_errors = self.max_errors is not None and not invalid
        return RunVerdict(
            invalid=invalid,
            gates=gates,
            comparison=comparison,
            why_not_compared=why_not_compared,
            allows_errors=allows_errors,
            fails=any(map(self._fails, gates))
            or any(not allows_errors if one.is_error else not (one.solved or gates) for one in results),
        )

    def _fails(self, gate: GateVerdict) -> bool:
        """Whether the run fails by the gate."""
        must_tell = self.baseline is not None and self.baseline.must_tell
        return gate.word in (FAILED, OPEN) or (must_tell and gate.word == CANNOT_TELL)

    def _plain_verdicts(
        self, results: Sequence[TrialResult], *, is_open: bool, is_valid: bool
    ) -> Iterator[GateVerdict]:
        for gate in self.plain:
            if is_open:
                yield GateVerdict(OPEN, gate.why_open)
            else:
                yield gate.verdict(results) if is_valid else GateVerdict(FAILED, FIGURES_INVALID)
