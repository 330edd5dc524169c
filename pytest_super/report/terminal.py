"""The summary of a run in the terminal, made by one iterator of lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import inf
from pathlib import PurePath

import pytest

from pytest_super.gate import CANNOT_TELL, FAILED, GATE, INVALID, OPEN, PASSED
from pytest_super.gate.figures import without_interrupted
from pytest_super.gate.wording import VERDICTS
from pytest_super.metrics import Metric
from pytest_super.metrics.accuracy import ACCURACY
from pytest_super.metrics.cause import Cause
from pytest_super.metrics.means import mean_with_errors
from pytest_super.metrics.suspect import SUSPECT
from pytest_super.report.facts import sign_line, text_of
from pytest_super.report.failure_line import describe
from pytest_super.report.notebook import NOTEBOOK
from pytest_super.report.repeats import repeat_lines
from pytest_super.report.summary import Group, agreements, cause_lines, columns, rows, totals, whole_epochs
from pytest_super.report.table import table_lines
from pytest_super.store.results import COST, RUN_COST, TrialResult
from pytest_super.words import counted, one_line

# Of so many trials, agreement says little.
FEW = 20
# The beginnings of lines that have a colour.
RED = ("error ", "missed ", "suspect ", "trouble ", INVALID, f"{GATE}{FAILED}", VERDICTS["regressed"])
GREEN = (f"{GATE}{PASSED}", VERDICTS["pass"])
YELLOW = (
    *("unknown ", "stopped ", f"{GATE}{OPEN}", f"{GATE}{CANNOT_TELL}"),
    *(VERDICTS["cannot tell"], "TOO FEW", "NO COLLAPSE"),
)
COLOURS = {**dict.fromkeys(RED, "red"), **dict.fromkeys(GREEN, "green"), **dict.fromkeys(YELLOW, "yellow")}


def write_lines(reporter: pytest.TerminalReporter, lines: Iterable[str]) -> None:
    """Write each line with its beginning in colour, if the terminal shows colours."""
    for line in lines:
        start = next(filter(line.startswith, COLOURS), "")
        reporter.write(start, **({COLOURS[start]: True} if start else {}))
        reporter.write(f"{line.removeprefix(start)}\n")


def summary_lines(
    results: list[TrialResult],
    metrics: Sequence[Metric],
    runs: list[TrialResult],
    afterwards: Mapping[str, str] | None = None,
    not_run: int = 0,
    folder: PurePath | None = None,
    width: float = inf,
    chosen_epochs: Mapping[str, int] | None = None,
) -> Iterator[str]:
    """The table, the totals, the failures with their reasons, and what the run did not end.

    `results` contains the last run of each trial, `runs` all runs, because each was paid for. `afterwards`
    maps the name of a trial to the error that came after it. `not_run` is the number of trials that did not
    begin, `folder` the run's folder, `width` the width of the terminal. `chosen_epochs` has the epochs that
    the model has chosen, by task.
    """
    ended = without_interrupted(results)
    whole = Group(set="all", results=ended)
    if ended:
        used = [metric for metric in metrics if any(is_used(metric, result) for result in ended)]
        heads = ["set", "category", "n", *heads_of(used), "errors"]
        table = [heads, *(row_of(group, used) for group in [*rows(ended), whole])]
        yield from table_lines(table, texts=2, width=width)
        yield from epoch_lines(ended)
        yield ""
    yield " · ".join(total_facts(ended, runs))
    yield from spent_lines(runs)
    yield from integrity_lines(ended)
    yield from repeat_lines(whole, chosen_epochs)
    yield from agreement_lines(whole)
    yield from cause_lines(ended)
    yield from unsolved_lines(results, folder or PurePath())
    yield from trouble_lines(afterwards or {})
    yield from unended_lines(results, not_run)
    reused = Counter(result.resumed_from for result in results if result.resumed_from)
    for run, count in reused.items():
        yield f"{counted(count, 'trial')} reused from {run}"


def spent_lines(runs: Sequence[TrialResult]) -> Iterator[str]:
    """What was paid, if answers were recorded.

    It is a little more than the rest of the cost: a trial's first own request pays for its whole prefix.
    """
    if recorded := sum(result.recorded_usd for result in runs):
        whole = sum(result.cost_usd or 0.0 for result in runs)
        spent, about = text_of(whole - recorded, COST), text_of(whole, COST)
        yield f"spent {spent}; without recorded answers it is about {about}"


def integrity_lines(results: Sequence[TrialResult]) -> Iterator[str]:
    """How many trials each kind of signs has, and each score without the suspect trials next to the score."""
    kinds = [{sign["kind"] for sign in result.integrity or ()} for result in results]
    if counts := Counter(kind for some in kinds for kind in sorted(some)):
        yield f"look twice: {', '.join(f'{count} {kind}' for kind, count in counts.most_common())}"
    honest = [result for result in results if not result.metrics.get(SUSPECT.name)]
    if suspect := len(results) - len(honest):
        names = dict.fromkeys(result.headline for result in results if result.headline)
        scores = (scores_of(name, results, honest) for name in names)
        yield f"{counted(suspect, 'suspect trial')}: {'; '.join(scores)}"


def scores_of(name: str, results: Sequence[TrialResult], honest: Sequence[TrialResult]) -> str:
    whole, without = (figure(Group(results=some).mean(name)) for some in (results, honest))
    return f"{name} {whole}, {without} without" if honest else f"{name} {whole}, none is left without"


def unended_lines(results: Sequence[TrialResult], not_run: int) -> Iterator[str]:
    """How many trials were stopped or did not begin, and how many the means are over."""
    whole = Group(results=without_interrupted(results))
    by_cost = sum(result.stop_reason == RUN_COST for result in results)
    counts = {
        "stopped by the run's limit of cost": by_cost,
        "interrupted": len(results) - whole.trials - by_cost,
        "not run": not_run,
    }
    if parts := [f"{count} {words}" for words, count in counts.items() if count]:
        of_all = f"{len(whole.valid)} of {counted(len(results) + not_run, 'trial')}"
        yield ", ".join(parts) + (f": the means are over {of_all}" if whole.valid else "")


def is_used(metric: Metric, result: TrialResult) -> bool:
    is_expected = metric.name in result.applicable and not metric.is_quiet
    return is_expected or metric.is_told(result.metrics.get(metric.name))


def heads_of(metrics: Sequence[Metric]) -> list[str]:
    """The headings of the means: of each field that has a column, then of each metric."""
    return [*(field.column for field in columns()), *(metric.heading for metric in metrics)]


def means_of(group: Group, metrics: Sequence[Metric]) -> list[str]:
    return [
        *(figure(group.mean_of_field(field)) for field in columns()),
        *(figure(group.mean(one.name), group.deviation(one.name), one.format) for one in metrics),
    ]


def row_of(group: Group, metrics: Sequence[Metric]) -> list[str]:
    return [group.set, group.category or "-", str(group.trials), *means_of(group, metrics), str(group.errors)]


def figure(value: float | None, deviation: float | None = None, format: str = ".3f") -> str:
    if value is None:
        return "-"
    return f"{value:{format}}" if deviation is None else f"{value:{format}} ± {deviation:{format}}"


def epoch_lines(results: Sequence[TrialResult]) -> Iterator[str]:
    """How the deviations were computed, if there are several epochs."""
    tasks = [{result.id for result in epoch} for epoch in whole_epochs(results)]
    valid = sum(map(bool, tasks))
    if valid > 1:
        is_same = all(one == tasks[0] for one in tasks)
        differ = "" if is_same else "; not all epochs have a valid trial of every task"
        yield f"±: sample deviation of the means of {valid} epochs{differ}"


def agreement_lines(group: Group) -> Iterator[str]:
    """How often script_executed agrees with the other metrics, if trials have both."""
    names = {"landmarks": "landmarks > 0.5", "accuracy": "accuracy 1"}
    parts = [
        f"with {names[name]} in {100 * found.share:.0f} % of {counted(found.trials, 'trial')}"
        for name, found in agreements(group).items()
        if found is not None and found.trials > FEW
    ]
    if parts:
        yield f"script_executed agrees {', '.join(parts)}"


def total_facts(results: list[TrialResult], runs: list[TrialResult]) -> Iterator[str]:
    for field, total in totals(runs):
        is_always = field.absent is not None
        if total or (is_always and total is not None):
            yield f"{field.total} {text_of(total, field)}"
    if reruns := sum(result.rerun > 0 for result in runs):
        yield counted(reruns, "rerun")
    with_errors = mean_with_errors(results, ACCURACY)
    if with_errors is not None and any(result.is_error for result in results):
        yield f"accuracy with errors as 0: {with_errors:.3f}"
    if any(result.isolated is False for result in results):
        yield "not isolated: not comparable with isolated runs"


def unsolved_lines(results: Iterable[TrialResult], folder: PurePath) -> Iterator[str]:
    """A line for each unsolved trial and each sign that makes one suspect.

    Trials of a task that missed alike have one line, with the notebook of the first. Its path is whole,
    however long the line is.
    """
    in_order = sorted(
        results, key=lambda one: (one.is_interrupted, not one.is_error, told_alike(one), one.name)
    )
    for _, alike in groupby(in_order, key=told_alike):
        result, *others = alike
        if line := unsolved_line(result, len(others), folder):
            yield line
        for sign in result.integrity or ():
            if sign["is_suspect"]:
                yield one_line(f"suspect {result.name}: {sign_line(sign)}")
        if result.kept:
            yield one_line(f"kept    {result.name}: {result.kept}")


def told_alike(result: TrialResult) -> tuple[str, ...]:
    """What is equal for trials that have one line."""
    is_miss = result.is_scored and not result.solved and not result.kept and not result.integrity
    return (result.id, describe(result)) if is_miss else (result.id, "", result.name)


def unsolved_line(result: TrialResult, others: int, folder: PurePath) -> str:
    """ "" for a solved trial; `others` is the number of further trials that missed alike."""
    if result.is_interrupted:
        return one_line(f"stopped {result.name}: {result.error} ({result.folder})")
    if result.is_error:
        return one_line(f"error   {result.name}: {result.error} ({result.folder})")
    if result.solved:
        return ""
    word = "unknown" if result.cause == Cause.UNKNOWN else "missed "
    name = f"{result.name} and {counted(others, 'further epoch')}" if others else result.name
    path = folder / result.folder / NOTEBOOK
    return f"{one_line(f'{word} {name}: {describe(result)}')}; {path}"


def trouble_lines(afterwards: Mapping[str, str]) -> Iterator[str]:
    """Failures after a trial. They fail the item but do not change its figures."""
    for name, words in sorted(afterwards.items()):
        yield one_line(f"trouble {name}: after the trial: {words}")
