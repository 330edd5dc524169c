"""The one object that decides a run: what is planned, whether the gates are decided, and the verdict.

The exit status and all reports are readings of the verdict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

from pytest_super.gate import CANNOT_TELL, FAILED, GATE, INVALID, OPEN, WORST_FIRST, Gate, Selected
from pytest_super.gate.figures import why_invalid
from pytest_super.metrics import Metric
from pytest_super.option_types import Epochs
from pytest_super.store.results import TrialResult, task_and_epoch

if TYPE_CHECKING:
    from pytest_super.gate.baseline import BaselineGate
    from pytest_super.gate.comparison import Comparison, SetComparison


@dataclass(frozen=True)
class GateVerdict:
    """What one gate has decided: one of the words of `gate`, and the lines that say so."""

    word: str
    lines: Sequence[str]
    comparison: Comparison | None = None
    """With its side; None if it has none, or if nothing was compared."""
    why_not_compared: str = ""
    """Why nothing can be compared; "" if it was, or if trials are missing."""

    @classmethod
    def because(cls, word: str, why: str) -> GateVerdict:
        return cls(word, (f"{GATE}{word}, {why}",))


@dataclass(frozen=True, kw_only=True)
class RunVerdict:
    """What all gates of a run have decided, and whether the run fails."""

    invalid: str
    """Why the figures of the run are invalid; "" if they are valid."""
    gates: Sequence[GateVerdict]
    baseline: GateVerdict = GateVerdict(OPEN, ())
    """That of the gate against the baseline; without one it has compared nothing."""
    anchor: GateVerdict = GateVerdict(OPEN, ())
    allows_errors: bool = False
    """Whether errors do not fail the run."""
    fails: bool = False
    """Whether the run fails, even if no test has failed."""

    @property
    def word(self) -> str:
        """`passed`, `failed`, `open` or `cannot tell`; "" without gates."""
        words = {gate.word for gate in self.gates}
        return next((word.lower() for word in WORST_FIRST if word in words), "")

    @property
    def lines(self) -> Iterator[str]:
        """Whether the figures are valid, and each gate."""
        if self.invalid:
            yield f"{INVALID}{self.invalid}"
        for gate in self.gates:
            yield from gate.lines

    @property
    def comparison(self) -> Comparison | None:
        """The one with the baseline."""
        return self.baseline.comparison

    @property
    def regression(self) -> dict[str, dict[str, Any]]:
        """Map sets to how they differ from the baseline; empty if nothing was compared or is decided."""
        return regressions_of(self.comparison)

    @property
    def facts(self) -> dict[str, object]:
        """The suite properties of JUnit XML, without the prefix."""
        compared: dict[str, object] = {
            f"regression.{name}{suffix}": one[key]
            for name, one in self.regression.items()
            for suffix, key in (("", "verdict"), (".points", "points"), (".not_run", "not_run"))
        }
        if self.comparison is not None:
            runs = self.comparison.candidate.pooled.items()
            compared["look"] = self.comparison.candidate.looks + 1
            compared["pooled"] = ", ".join(f"{run}: {trials}" for run, trials in runs)
        return {"invalid": self.invalid, "verdict": self.word, **compared}

    def to_data(self) -> dict[str, Any]:
        """The content of verdict.json."""
        return {
            "invalid": self.invalid,
            "gates": [line for gate in self.gates for line in gate.lines],
            "regression": self.regression,
            "anchor": regressions_of(self.anchor.comparison),
            "baseline_age": self.comparison.baseline_age if self.comparison else None,
            "look": self.comparison.candidate.looks + 1 if self.comparison else None,
            "pooled": self.comparison.candidate.pooled if self.comparison else {},
            "verdict": self.word,
        }


def regressions_of(comparison: Comparison | None) -> dict[str, dict[str, Any]]:
    if comparison is None or comparison.too_many_errors is not None:
        return {}
    return {one.set: regression_of(one) for one in comparison.sets}


def regression_of(one: SetComparison) -> dict[str, Any]:
    """The verdict on a set; in points, the difference, its interval and the baseline's standard error.

    `not_run` is the number of its tasks that were left out because the baseline never solved them.
    """
    low, high = (round(100 * bound, 2) for bound in one.difference.bounds(one.level))
    points = round(100 * one.difference.value, 2)
    error = round(100 * one.baseline_error, 2)
    return {
        "verdict": one.verdict,
        "points": points,
        "low": low,
        "high": high,
        "baseline_error": error,
        "not_run": len(one.not_run),
    }


@dataclass(frozen=True, kw_only=True)
class RunGates:
    """Decides a run; one without gates by its trials alone."""

    epochs: Epochs
    plain: Sequence[Gate] = ()
    metrics: Sequence[Metric] = ()
    baseline: BaselineGate | None = None
    anchor: BaselineGate | None = None
    """Compares with an older side as well."""
    max_errors: float | None = None
    """The share of the trials that can be errors; None if any error fails the run."""

    def plan(self, selected: Selected) -> Mapping[str, int]:
        """How often each of these tasks runs at most. Called before the first trial."""
        if self.baseline is None:
            return dict.fromkeys(selected.ids, self.epochs.most)
        needed = {id for id in selected.ids if any(gate.needs(id) for gate in self.plain)}
        if self.anchor is not None:
            # What it solved can be lost, although the baseline never solved it.
            needed |= {id for id, task in self.anchor.side.tasks.items() if any(task.values)}
        selected = replace(selected, must_run={*selected.must_run, *needed})
        plan = self.baseline.plan(selected, self.epochs)
        if self.anchor is not None:
            self.anchor.planned = plan
        return plan.epochs

    def is_decided(self, results: Sequence[TrialResult], to_come: Collection[str], epoch: int) -> bool:
        """Whether the run can end after this epoch. `to_come` has the names of the trials to come."""
        compared = [
            gate.compared(results, epoch)[0] for gate in (self.baseline, self.anchor) if gate is not None
        ]
        found = {"" if one is None else one.verdict for one in compared}
        # One that has regressed makes the run red whatever the other says.
        is_compared = "regressed" in found or found <= {"pass"}
        return is_compared and are_settled(self.plain, self.metrics, results, to_come, self.max_errors)

    def verdict(self, results: Sequence[TrialResult], *, not_run: int, epoch: int) -> RunVerdict:
        """Decide on a run that has ended, by the last result of each trial.

        `not_run` is the number of trials that did not begin, `epoch` the last one that the comparison counts.
        """
        # A gate is for all trials.
        is_open = bool(not_run) or any(one.is_interrupted for one in results)
        invalid = why_invalid(results, self.max_errors)
        gates = [self._decided(gate, results, is_open=is_open, is_valid=not invalid) for gate in self.plain]
        sides = {
            name: self._against(gate, results, epoch, is_open=is_open)
            for name, gate in (("baseline", self.baseline), ("anchor", self.anchor))
            if gate is not None
        }
        # The last line is read first.
        gates += sorted(sides.values(), key=lambda one: -WORST_FIRST.index(one.word))
        allows_errors = self.max_errors is not None and not invalid
        has_errors = any(one.is_error for one in results)
        has_misses = any(not one.is_error and not one.solved for one in results)
        return RunVerdict(
            invalid=invalid,
            gates=gates,
            **sides,
            allows_errors=allows_errors,
            # A task that is not solved fails a run without gates alone.
            fails=any(map(self._fails, gates))
            or (has_errors and not allows_errors)
            or (has_misses and not gates),
        )

    def _decided(
        self, gate: Gate, results: Sequence[TrialResult], *, is_open: bool, is_valid: bool
    ) -> GateVerdict:
        if is_open:
            return GateVerdict.because(OPEN, gate.why_open)
        if not is_valid:
            return GateVerdict.because(CANNOT_TELL, "too many trials are infrastructure errors")
        return GateVerdict.because(*gate.decide(results))

    def _against(
        self, gate: BaselineGate, results: Sequence[TrialResult], epoch: int, *, is_open: bool
    ) -> GateVerdict:
        if is_open:
            return GateVerdict.because(OPEN, "not all trials have ended")
        comparison, why_not = gate.compared(results, epoch)
        if comparison is None:
            why = f"nothing can be compared: {why_not}" if gate.is_anchor else "nothing can be compared"
            return replace(GateVerdict.because(FAILED, why), why_not_compared=why_not)
        return GateVerdict(*gate.decide(comparison), comparison)

    def _fails(self, gate: GateVerdict) -> bool:
        """Whether the run fails by the gate."""
        must_tell = self.baseline is not None and self.baseline.must_tell
        return gate.word in (FAILED, OPEN) or (must_tell and gate.word == CANNOT_TELL)


# More tokens than any trial uses.
MOST_TOKENS = 10**15


def whole_epochs(to_come: Iterable[str], *, after: int) -> range:
    """The epochs after `after` that have ended whole. `to_come` has the names of the trials to come."""
    return range(after + 1, min((task_and_epoch(name)[1] for name in to_come), default=1))


def are_settled(
    gates: Iterable[Gate],
    metrics: Sequence[Metric],
    results: Sequence[TrialResult],
    to_come: Collection[str],
    max_errors: float | None,
) -> bool:
    """Whether no result of the trials to come can change one of the gates.

    As long as a task of theirs has no result, nothing is settled. Nor is it while too many errors make the
    figures invalid and further valid trials could change that.
    """
    known = {result.id: result for result in results}
    ids = [task_and_epoch(name)[0] for name in to_come]
    if not known.keys() >= set(ids):
        return False
    best = [*results, *(extreme(known[id], metrics, is_best=True) for id in ids)]
    worst = [*results, *(extreme(known[id], metrics, is_best=False) for id in ids)]
    if why_invalid(results, max_errors):
        return bool(why_invalid(best, max_errors))
    return all(gate.decide(best)[0] == gate.decide(worst)[0] for gate in gates)


def extreme(known: TrialResult, metrics: Sequence[Metric], *, is_best: bool) -> TrialResult:
    """The best or the worst result of another trial of the task, whatever the gate bounds."""
    values = {
        metric.name: best_of(metric) if is_best else metric.value_of_error
        for metric in metrics
        if metric.name in known.applicable
    }
    used: dict[str, Any] = {
        "cost_usd": 0.0 if is_best else inf,
        "prompt_tokens": 0 if is_best else MOST_TOKENS,
        "completion_tokens": 0,
    }
    return replace(known, error=None, solved=is_best, metrics={**known.metrics, **values}, **used)


def best_of(metric: Metric) -> float:
    if metric.best is not None:
        return metric.best
    return inf if metric.higher_is_better else -inf
