"""How many epochs a comparison with a baseline needs, which tasks it can do without, and what it can find."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum

from pytest_super.gate import Selected
from pytest_super.gate.difference import Confidence
from pytest_super.gate.never_solved import never_solved
from pytest_super.gate.planning import Power, Schedule, epochs_to_detect, power, schedule
from pytest_super.gate.samples import Sample, sample_of
from pytest_super.gate.side import Side, TaskTrials
from pytest_super.option_types import PASS_CHANCE, Epochs
from pytest_super.words import counted

# Of the margin, what tasks that are not run can hide at most.
MOST_HIDDEN = 1 / 5


@dataclass(frozen=True, kw_only=True)
class SetPlan:
    """The tasks of one set that are compared with the baseline, and run."""

    tasks: Mapping[str, TaskTrials]
    baseline: Sample
    """Its trials of these tasks."""
    schedule: Schedule
    finds: Power
    """If each of them runs in all its epochs."""
    margin: float
    """The drop of these tasks that is ruled out."""


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """How often each task runs at most, and when the run is compared."""

    sets: Mapping[str, SetPlan] = field(default_factory=dict)
    epochs: Mapping[str, int] = field(default_factory=dict)
    """By task id; 0 for those that do not run, because the baseline never solved them."""
    is_adaptive: bool = False
    least: int = 1
    """The epoch after which the first look comes. There is one after each further epoch."""

    @property
    def not_run(self) -> list[str]:
        """The tasks that do not run."""
        return sorted(id for id, epochs in self.epochs.items() if not epochs)

    @property
    def expected(self) -> dict[str, float]:
        """Map the ids of all tasks to the epochs that are expected of an agent that has not changed."""
        expected: dict[str, float] = {}
        for one in self.sets.values():
            expected |= zip(one.tasks, one.schedule.expected(one.margin), strict=True)
        return expected

    def weak_lines(self, margin: float) -> Iterator[str]:
        """Say for each set that a drop of `margin` cannot be found, and what would find it."""
        for name, one in self.sets.items():
            # With adaptive epochs, who asks for fewer passes also finds fewer drops.
            if one.finds.can_find(margin) or (self.is_adaptive and one.schedule.is_enough):
                continue
            drop = one.finds.detectable
            told = "no drop" if drop is None else f"a drop of {100 * drop:.1f} points"
            found = f"{name}: {told} can be found, not one of {100 * margin:g}"
            if needed := epochs_to_detect(one.baseline, one.margin):
                yield f"TOO FEW EPOCHS  {found}; {counted(needed, 'epoch')} would be enough"
            else:
                yield (
                    f"TOO FEW TASKS  {found} by any number of epochs: use more tasks, "
                    "a baseline with more epochs, or a larger --super-max-regression"
                )

    def confidence_after(self, epoch: int, of_run: Confidence) -> Confidence:
        """How sure the bounds of the look after an epoch must be, so that all are as sure as `of_run`."""

        def confidence(set_name: str, sets: int) -> float:
            known = self.sets[set_name].schedule.confidences(of_run(set_name, sets))
            # A set whose tasks need fewer epochs than others has had its last look before.
            return known[min(epoch - self.least, len(known) - 1)]

        return confidence


def plan_of(
    side: Side,
    selected: Selected,
    epochs: Epochs,
    margin: float,
    *,
    pass_chance: float = PASS_CHANCE,
    leaves_out: bool = False,
) -> RunPlan:
    """Plan the run. Tasks that cannot be compared run as rarely as possible.

    By its last look an agent that has not changed passes with `pass_chance`, if the epochs allow it. If it
    `leaves_out` tasks, those that the baseline never solved need not run.
    """
    common = {id: task for id, task in side.tasks.items() if id in selected.ids and id not in selected.apart}
    most = dict.fromkeys(selected.ids, epochs.least)
    sets: dict[str, SetPlan] = {}
    for name in sorted({task.set for task in common.values()}):
        own = {id: task for id, task in common.items() if task.set == name}
        found = set_plan(own, epochs, margin, pass_chance)
        part = part_plan(own, epochs, margin, pass_chance, selected.must_run) if leaves_out else None
        # Without some tasks the others can need more epochs.
        if part is not None and sum(part.schedule.epochs) < sum(found.schedule.epochs):
            found = part
        sets[name] = found
        most |= dict.fromkeys(own, 0) | dict(zip(found.tasks, found.schedule.epochs, strict=True))
    return RunPlan(sets=sets, epochs=most, is_adaptive=epochs.is_adaptive, least=epochs.least)


def set_plan(tasks: Mapping[str, TaskTrials], epochs: Epochs, margin: float, pass_chance: float) -> SetPlan:
    baseline = sample_of([task.values for task in tasks.values()], weights_of(tasks))
    found = schedule(baseline, least=epochs.least, most=epochs.most, margin=margin, pass_chance=pass_chance)
    finds = power(baseline, found.epochs, margin)
    return SetPlan(tasks=tasks, baseline=baseline, schedule=found, finds=finds, margin=margin)


def part_plan(
    tasks: Mapping[str, TaskTrials],
    epochs: Epochs,
    margin: float,
    pass_chance: float,
    must_run: Collection[str],
) -> SetPlan | None:
    """Leave out tasks that were never solved; None if there are none, or they could hide too much."""
    never, rate = never_solved(tasks)
    rest = {id: task for id, task in tasks.items() if id in must_run or id not in never}
    if not 0 < len(rest) < len(tasks):
        return None
    share = fsum(weights_of(rest)) / fsum(weights_of(tasks))
    hidden = rate * (1 - share)
    if hidden > MOST_HIDDEN * margin:
        return None
    # Differences of the rest count by its share.
    found = set_plan(rest, epochs, (margin - hidden) / share, pass_chance)
    drop = found.finds.detectable
    return replace(found, finds=replace(found.finds, detectable=None if drop is None else share * drop))


def weights_of(tasks: Mapping[str, TaskTrials]) -> Sequence[float]:
    return [task.weight for task in tasks.values()]
