"""How a session scores its trials: its metrics and its gates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from pytest_super.agents.identity import is_in_image
from pytest_super.errors import SuperError
from pytest_super.gate import Gate, require_scipy
from pytest_super.gate.baseline_file import read_side
from pytest_super.gate.earlier import EarlierRuns, earlier_runs
from pytest_super.gate.fail_under import parse_gate
from pytest_super.gate.must_solve import read_must_solve
from pytest_super.gate.side import Side
from pytest_super.gate.verdict import RunGates
from pytest_super.metrics import Metric
from pytest_super.metrics.registry import REFERENCE, checked, installed_metrics
from pytest_super.session.run import MAKES_AGENTS, Run, is_worker, offers
from pytest_super.session.settings import Settings, usage_errors

if TYPE_CHECKING:
    from pytest_super.gate.baseline import BaselineGate


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """Equal on the controller and on every worker."""

    metrics: tuple[Metric, ...]
    gates: tuple[Gate, ...]
    """Those on plain figures."""
    providers: int
    """The number of plugins and conftests that were asked for metrics."""


ON_COMMAND_LINE = "--super-fail-under"
SCORING = pytest.StashKey[Scoring]()
GATES: pytest.StashKey[RunGates] = pytest.StashKey()
"""On the controller of a run, and in all processes of one with a range of epochs."""


def read_scoring(config: pytest.Config, settings: Settings) -> Scoring:
    """Ask conftests and plugins for their metrics, and read the gates. Raises SuperError."""
    # Hook results are in reverse order of registration.
    offered = reversed(config.hook.pytest_super_metrics(config=config))
    metrics = checked([*installed_metrics(), *(metric for some in offered for metric in some)])
    source = source_of_gates(config)
    # With the published code nothing refuses a gate of the ini file that never applies.
    must_apply = source == ON_COMMAND_LINE or settings.scoring == REFERENCE
    parsed: list[Gate] = [
        replace(parse_gate(text, metrics, source), must_apply=must_apply) for text in settings.fail_under
    ]
    if settings.must_solve is not None:
        parsed.append(read_must_solve(settings.must_solve))
    return Scoring(metrics=metrics, gates=tuple(parsed), providers=providers(config))


def read_gates(config: pytest.Config, run: Run, scoring: Scoring) -> RunGates:
    """All gates of a run. Raises pytest.UsageError if its baseline cannot be read."""
    baseline = baseline_gate(config, run)
    return RunGates(
        epochs=run.settings.epochs,
        plain=scoring.gates,
        metrics=scoring.metrics,
        baseline=baseline,
        anchor=anchor_gate(run, baseline) if baseline and run.settings.anchor else None,
        max_errors=run.settings.max_errors,
    )


def anchor_gate(run: Run, baseline: BaselineGate) -> BaselineGate:
    """The gate against the anchor, by the trials and the plan of the one against the baseline."""
    assert run.settings.anchor is not None
    with usage_errors("--super-anchor"):
        return replace(baseline, side=read_side(run.settings.anchor), is_anchor=True)


def baseline_gate(config: pytest.Config, run: Run) -> BaselineGate | None:
    settings = run.settings
    if settings.baseline is None:
        return None
    with usage_errors("--super-baseline"):
        require_scipy()
        side = read_side(settings.baseline)
    # Not at the top: a run without a baseline needs no scipy.
    from pytest_super.gate.baseline import BaselineGate
    from pytest_super.gate.never_solved import is_audited

    return BaselineGate(
        side=side,
        margin=settings.max_regression / 100,
        pass_chance=settings.pass_chance,
        must_tell=settings.cannot_tell == "fail",
        run=run.id,
        subject=run.subject,
        earlier=earlier_runs_of(config, run, side),
        arguments=config.invocation_params.args,
        answers=settings.answers_of,
        sides=2 if settings.anchor else 1,
        leaves_out=settings.epochs.is_adaptive
        and not settings.all_tasks
        and notices_changes(config, run)
        and not is_audited(run.subject, side.run),
    )


def earlier_runs_of(config: pytest.Config, run: Run, baseline: Side) -> EarlierRuns:
    """Find the earlier runs that count; none if a change of the agent could go unnoticed."""
    # Workers do not compare.
    if is_worker(config) or not notices_changes(config, run):
        return EarlierRuns()
    return earlier_runs(run.settings.directory, run.id, run.subject, baseline.run)


def notices_changes(config: pytest.Config, run: Run) -> bool:
    """Whether any change of the agent is one of the subject."""
    is_known = bool(run.subject["contents"]) or is_in_image(run.settings.agent)
    return is_known and not offers(config, *MAKES_AGENTS) and not run.settings.for_sandboxes.mounts


def source_of_gates(config: pytest.Config) -> str:
    is_option = config.getoption("super_fail_under") is not None
    return ON_COMMAND_LINE if is_option else "the ini value super_fail_under"


def providers(config: pytest.Config) -> int:
    return len(config.hook.pytest_super_metrics.get_hookimpls())


def refuse_late_metrics(config: pytest.Config) -> None:
    """Raises SuperError for metrics of a conftest read in collection: xdist's controller lacks them."""
    if providers(config) > config.stash[SCORING].providers:
        raise SuperError(
            "pytest_super_metrics is only called in a conftest.py that pytest reads at its start: "
            "move it to the one next to the ini file"
        )
