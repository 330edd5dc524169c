"""A comparison as the text that a terminal shows, and as Markdown for the summary of a job of GitHub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING, Any

from pytest_super.gate.comparison import ComparedTask, Comparison, SetComparison
from pytest_super.gate.side import Side, TaskTrials, summed
from pytest_super.report.comparison_notes import compared_lines, note_lines
from pytest_super.report.table import WIDTH, table_lines
from pytest_super.words import counted, dollars, named, one_line, printable_line

if TYPE_CHECKING:
    from pytest_super.gate.plan import RunPlan

CHANCE = "80 % chance to see a drop of {points:.1f} points"
NO_CHANCE = "no drop has an 80 % chance to be seen"
NOT_RUN = (
    "{set}: {tasks} that {baseline} never solved in {trials} do not run: "
    "they do for one change of the agent in ten, as an audit, and with --super-all-tasks"
)
HEADS = ("set", "tasks", "baseline", "candidate", "points", "90 % interval", "lost", "won")
# So many tasks are named in a line; the others are counted.
MOST_NAMED = 10
# Facts of a subject that one agent alone heeds.
HEEDED_BY = {"retrieval": "agentless", "attempts": "reflexion"}


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """What was tried, a table of the sets, the tasks that changed, what was left out, and the notes."""
    baseline, candidate = comparison.baseline, comparison.candidate
    yield one_line(f"baseline {told(baseline)}; candidate {told(candidate)}")
    yield from subject_lines(baseline.subject, candidate.subject)
    yield from table_lines([HEADS, *map(row_of, comparison.sets)], width=WIDTH)
    yield from used_lines(comparison.ran)
    for one in comparison.sets:
        for word in ("lost", "won"):
            yield from flip_lines(word, one.flipped(word))
    shares = [f"{cause} {100 * old:.0f} -> {100 * new:.0f} %" for cause, old, new in causes(comparison)]
    if shares:
        yield f"causes, of all trials: {', '.join(shares)}"
    for reason, ids in comparison.left_out.items():
        yield one_line(f"left out, {reason}: {named(ids, MOST_NAMED)}")
    yield from map(printable_line, note_lines(comparison))


def causes(comparison: Comparison) -> list[tuple[str, float, float]]:
    """The causes of misses, the most frequent first; none if those of a side are not known."""
    sides = [one.baseline for one in comparison.ran], [one.candidate for one in comparison.ran]
    before, after = counts = [summed(task.causes for task in side) for side in sides]
    misses = [sum(value < 1 for task in side for value in task.values) for side in sides]
    if any(known.total() < number for number, known in zip(misses, counts, strict=True)):
        return []
    old, new = (sum(len(task.values) for task in side) for side in sides)
    shares = [(cause, before[cause] / old, after[cause] / new) for cause in before | after]
    return sorted(shares, key=lambda one: (-max(one[1:]), one[0]))


def side_lines(side: Side) -> Iterator[str]:
    """What a baseline says: its subject, and a table of its tasks."""
    yield one_line(f"{side.name}: {counted(len(side.tasks), 'task')}, {counted(side.epochs, 'epoch')}")
    runs = [f"{run} ({day})" if day else run for run, day in side.runs.items()]
    yield one_line(f"{counted(len(runs), 'run')}: {', '.join(runs)}")
    facts = {name: value for name, value in side.subject.items() if value}
    agent = facts.get("agent")
    told = (f"{name} {value}" for name, value in facts.items() if HEEDED_BY.get(name, agent) == agent)
    yield one_line(", ".join(told))
    rows = [
        [id, task.set, f"{fmean(task.values):.3f}", str(len(task.values))] for id, task in side.tasks.items()
    ]
    yield from table_lines([["task", "set", "mean", "trials"], *rows], texts=2)


def plan_lines(plan: RunPlan, side: Side, margin: float) -> Iterator[str]:
    """What can be found, by set, and whether that is enough."""
    if not plan.sets:
        yield one_line(f"{side.name} has none of the tasks that are to run")
    for name, one in plan.sets.items():
        drop = one.finds.detectable
        chance = NO_CHANCE if drop is None else CHANCE.format(points=100 * drop)
        passes = f"{100 * one.finds.passes_unchanged:.0f} % to pass if nothing has changed"
        epochs = epochs_of(plan.least, one.schedule.epochs)
        yield one_line(f"{name}: {epochs} against {side.name}: {chance}, {passes}{cost_of(plan, side, name)}")
        if absent := [id for id in plan.not_run if side.tasks[id].set == name]:
            trials = counted(min(len(side.tasks[id].values) for id in absent), "trial")
            tasks = counted(len(absent), "task")
            yield one_line(NOT_RUN.format(set=name, tasks=tasks, baseline=side.name, trials=trials))
    yield from map(one_line, plan.weak_lines(margin))


def cost_of(plan: RunPlan, side: Side, set_name: str) -> str:
    """What the trials of a set cost, if each costs as in the baseline; "" if that is not known."""
    tasks = {id: task for id, task in side.tasks.items() if task.set == set_name and id in plan.epochs}
    costs = {id: task.cost_usd for id, task in tasks.items() if task.cost_usd is not None}
    if len(costs) < len(tasks) or not any(costs.values()):
        return ""
    most = dollars(fsum(plan.epochs[id] * cost for id, cost in costs.items()))
    epochs = plan.expected
    expected = dollars(fsum(epochs.get(id, 0.0) * cost for id, cost in costs.items()))
    if expected == most:
        return f"; about {most} of model calls"
    return f"; about {expected} of model calls if nothing has changed, {most} at most"


def epochs_of(least: int, most: Sequence[int]) -> str:
    if max(most) == least:
        return counted(least, "epoch")
    return f"{least} to {max(most)} epochs (at most {counted(sum(most), 'trial')})"


def told(side: Side) -> str:
    return f"{side.name} ({counted(side.epochs, 'epoch')})"


def subject_lines(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """What differs in what was tried."""
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            is_digest = name in ("contents", "prompt", "trajectory", "script")
            words = "changed" if is_digest else f"{before.get(name)} -> {after.get(name)}"
            yield one_line(f"{'code of the agent' if name == 'contents' else name}: {words}")


def row_of(one: SetComparison) -> list[str]:
    low, high = one.difference.bounds(one.level)
    return [
        one.set,
        str(len(one.tasks)),
        f"{mean_of([task.baseline for task in one.tasks]):.3f}",
        f"{mean_of([task.candidate for task in one.tasks]):.3f}",
        f"{100 * one.difference.value:+.1f}",
        f"{100 * low:+.1f} to {100 * high:+.1f}",
        str(len(one.flipped("lost"))),
        str(len(one.flipped("won"))),
    ]


def mean_of(tasks: Sequence[TaskTrials]) -> float:
    return fmean((fmean(task.values) for task in tasks), weights=[task.weight for task in tasks])


def used_lines(tasks: Sequence[ComparedTask]) -> Iterator[str]:
    """What a trial costs, of the tasks that both sides have."""
    before, after = [task.baseline for task in tasks], [task.candidate for task in tasks]
    tokens = [fmean(task.tokens for task in side) for side in (before, after)]
    seconds = [fmean(task.seconds for task in side) for side in (before, after)]
    costs = [[task.cost_usd for task in side if task.cost_usd is not None] for side in (before, after)]
    parts = [f"{seconds[0]:.0f} -> {seconds[1]:.0f} s"]
    if any(tokens):
        parts.insert(0, f"{tokens[0]:,.0f} -> {tokens[1]:,.0f} tokens")
    if all(costs):
        parts.insert(0, f"${fmean(costs[0]):.4f} -> ${fmean(costs[1]):.4f}")
    yield f"a trial: {', '.join(parts)}"


def flip_lines(word: str, tasks: Sequence[ComparedTask]) -> Iterator[str]:
    for task in tasks[:MOST_NAMED]:
        yield one_line(f"{word:<4}  {task.id}  {mean_text(task.baseline)} -> {mean_text(task.candidate)}")
    if len(tasks) > MOST_NAMED:
        yield f"{word:<4}  and {len(tasks) - MOST_NAMED} more"


def mean_text(task: TaskTrials) -> str:
    return f"{fmean(task.values):.2f}"


def markdown(comparison: Comparison) -> str:
    """GitHub's Markdown. Ids of tasks and names of sets have no characters that it would read as markup."""
    return "\n".join([*markdown_lines(comparison), ""])


def markdown_lines(comparison: Comparison) -> Iterator[str]:
    """The first line is a heading. The tasks that flipped come first."""
    yield f"Agent: {comparison.verdict}"
    yield ""
    yield from (f"- {line}" for line in compared_lines(comparison))
    if comparison.flips:
        yield ""
        rows = [
            [task.flip, task.id, *map(mean_text, (task.baseline, task.candidate))]
            for task in comparison.flips
        ]
        yield from markdown_table(("", "task", "baseline", "candidate"), rows)
    yield ""
    yield from markdown_table(HEADS, (row_of(one) for one in comparison.sets))


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
