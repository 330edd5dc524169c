"""The summary in the terminal, made by one iterator of lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.report.summary import Group, epochs_of, gate_accuracy, is_reached, rows, summarise
from pytest_super.report.text import counted, describe, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_super.store.results import TrialResult

LINE_LIMIT = 300
# Of a column of figures, and of one whose figures have their deviation beside them.
WIDTH, WIDE = 10, 15


def summary_lines(
    results: list[TrialResult],
    fail_under: float | None,
    runs: list[TrialResult],
    afterwards: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """The table, the totals, what failed and why, and the gate.

    `results` holds the last run of each trial, `runs` all of them: each was paid for. `afterwards` maps the
    name of a trial to what failed after it.
    """
    whole = total(results)
    yield from table_lines([*rows(results), whole])
    yield from epoch_lines(results)
    yield ""
    yield " · ".join(total_facts(results, runs))
    yield from agreement_lines(whole)
    yield from unsolved_lines(results)
    yield from trouble_lines(afterwards or {})
    yield from gate_lines(results, fail_under)


def total(results: list[TrialResult]) -> Group:
    return summarise(results, set_name="all")


def table_lines(groups: Sequence[Group]) -> Iterator[str]:
    wide = WIDE if any(has_deviation(group) for group in groups) else WIDTH
    yield (
        f"{'set':<10} {'category':<14} {'n':>5} {'solved':>8} {'accuracy':>{wide - 1}} {'landmarks':>{wide}} "
        f"{'submitted':>10} {'executed':>{wide - 1}} {'errors':>7}"
    )
    for row in groups:
        yield (
            f"{row.set:<10} {row.category or '-':<14} {row.trials:>5} {figure(row.solved):>8} "
            f"{figure(row.accuracy, row.accuracy_deviation):>{wide - 1}} "
            f"{figure(row.landmarks, row.landmarks_deviation):>{wide}} {figure(row.submitted):>10} "
            f"{figure(row.script_executed, row.script_executed_deviation):>{wide - 1}} {row.errors:>7}"
        )


def has_deviation(group: Group) -> bool:
    found = (group.accuracy_deviation, group.landmarks_deviation, group.script_executed_deviation)
    return any(value is not None for value in found)


def figure(value: float | None, deviation: float | None = None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if deviation is None else f"{value:.3f} ± {deviation:.3f}"


def epoch_lines(results: Iterable[TrialResult]) -> Iterator[str]:
    """What the deviations are of, where there are some."""
    epochs = epochs_of(results)
    valid = [tasks for tasks in epochs.values() if tasks]
    if len(valid) > 1:
        differ = "; not all epochs have a valid trial of every task" if len(set(epochs.values())) > 1 else ""
        yield f"±: sample deviation of the means of {len(valid)} epochs{differ}"


def agreement_lines(group: Group) -> Iterator[str]:
    """How far script_executed stands for the other metrics, where trials have both."""
    named = (("landmarks > 0.5", group.with_landmarks), ("accuracy 1", group.with_accuracy))
    parts = [
        f"with {name} in {found.share:.0%} of {counted(found.trials, 'trial')}".replace("%", " %")
        for name, found in named
        if found is not None
    ]
    if parts:
        yield f"script_executed agrees {', '.join(parts)}"


def total_facts(results: list[TrialResult], runs: list[TrialResult]) -> Iterator[str]:
    yield f"compute {sum(result.compute_seconds for result in runs):.1f} s"
    if model_seconds := sum(result.model_seconds for result in runs):
        yield f"model {model_seconds:.1f} s"
    tokens = sum(result.prompt_tokens + result.completion_tokens for result in runs)
    if tokens:
        yield f"tokens {tokens:,}"
    costs = [result.cost_usd for result in runs if result.cost_usd is not None]
    if costs:
        yield f"cost ${sum(costs):.4f}"
    if len(runs) > len(results):
        yield counted(len(runs) - len(results), "rerun")
    if any(result.is_error for result in results) and (with_errors := gate_accuracy(results)) is not None:
        yield f"accuracy with errors as 0: {with_errors:.3f}"
    if any(result.isolated is False for result in results):
        yield "not isolated: not comparable with isolated runs"


def unsolved_lines(results: Iterable[TrialResult]) -> Iterator[str]:
    for result in sorted(results, key=lambda result: (not result.is_error, result.name)):
        if result.is_error:
            yield one_line(f"error   {result.name}: {result.error} ({result.folder})")
        elif not result.solved:
            yield one_line(f"missed  {result.name}: {describe(result)}")
        if result.kept:
            yield one_line(f"kept    {result.name}: {result.kept}")


def trouble_lines(afterwards: Mapping[str, str]) -> Iterator[str]:
    """What fails an item whose figures stand: its trial was over."""
    for name, words in sorted(afterwards.items()):
        yield one_line(f"trouble {name}: after the trial: {words}")


def gate_lines(results: list[TrialResult], fail_under: float | None) -> Iterator[str]:
    if fail_under is None:
        return
    reached = gate_accuracy(results)
    if reached is None:
        yield "gate: FAILED, no trial has an accuracy"
    elif not is_reached(reached, fail_under):
        yield f"gate: FAILED, mean accuracy {reached:.4f} is under {fail_under:g}"
    else:
        yield f"gate: passed, mean accuracy {reached:.4f} is at least {fail_under:g}"


def one_line(text: str) -> str:
    line = printable(text.replace("\n", " | "))
    return line if len(line) <= LINE_LIMIT else f"{line[:LINE_LIMIT]}…"
