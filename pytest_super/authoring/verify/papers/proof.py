"""Proves a paper for all its items: gold passes in fresh kernels, stubs fail, functions are executed."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from pytest_super.authoring.verify.gold_run import EXIT as EXIT_LINE
from pytest_super.authoring.verify.papers.leaks import texts_of_task
from pytest_super.authoring.verify.papers.runs import UNCOMPILED, Originals, RunResult, Runs, Trial
from pytest_super.authoring.verify.papers.values import Failure, Spread, failures_of, spreads_of
from pytest_super.authoring.verify.papers.variations import Proposal, propose
from pytest_super.authoring.verify.texts import repository_texts
from pytest_super.functions.masking import Stub
from pytest_super.tasks.combinations import function_ids
from pytest_super.tasks.grade import GradedCommand
from pytest_super.tasks.paper import SEED_VARIABLE, Experiment, graded_commands
from pytest_super.tasks.task import Task

SEEDS, EXIT, PROBES = "seeds", "exit", "probes"
Key: TypeAlias = "tuple[str, int]"
"""What is run besides gold: SEEDS and a seed, EXIT, PROBES and an experiment, a stub and a function."""
STUBS: tuple[Stub, ...] = get_args(Stub)
Verdict: TypeAlias = Literal["valid", "gold_fails", "flaky", "not_executed", "insensitive"]


@dataclass(frozen=True, kw_only=True)
class FunctionProof:
    """The verdict on one function, with its evidence."""

    id: str
    target: str
    verdict: Verdict
    executed_by: list[str] = field(default_factory=list)
    """The experiments that need it and have executed it."""
    not_executed_by: list[str] = field(default_factory=list)
    """The others that need it and that gold passes."""
    passing_stubs: list[str] = field(default_factory=list)
    """Stubs with which all its experiments pass."""
    unaffected: list[str] = field(default_factory=list)
    """Experiments that pass although the function only raises."""


@dataclass(frozen=True, kw_only=True)
class PaperProof:
    """The verdict on a paper."""

    paper: str
    gold_runs: int
    failures: list[Failure]
    """Of gold runs."""
    exits_pass: bool
    """Whether the experiments pass although the files only end the program."""
    spreads: list[Spread]
    """Over hash seeds, which should change nothing."""
    seeds: int
    """Runs of the experiments that read a seed, each with another one."""
    seed_spreads: list[Spread]
    seed_failures: list[Failure]
    proposals: list[Proposal]
    """For each experiment without a variation."""
    undescribed: list[str]
    """The targets of functions with neither `passage` nor `description`."""
    functions: list[FunctionProof]


def prove(code: Originals, runs: Runs, *, epochs: int, logs: Path, sample: int | None = None) -> PaperProof:
    """Prove all functions of a paper or a random sample. Raises SuperError and InfrastructureError."""
    paper = code.paper
    places: Sequence[int] = range(len(paper.functions))
    if sample is not None and sample < len(places):
        places = sorted(random.Random(paper.id).sample(places, sample))
    commands = graded_commands(paper.experiments)
    gold = runs.all(seeded_trials(code, commands, "PYTHONHASHSEED", epochs, f"{logs}/gold"))
    # Of an experiment that fails anyway, no other run shows anything.
    working = [one for one in paper.experiments if all(run.passed(one) for run in gold)]
    code = replace(code, paper=paper.model_copy(update={"experiments": working}))
    trials = {**common_trials(code, epochs, logs), **stub_trials(code, places)} if working else {}
    results = dict(zip(trials, runs.all(trials.values()), strict=True))
    passes = [result.passes for result in gold]
    verdict: Verdict = "valid" if all(passes) else "flaky" if any(passes) else "gold_fails"
    seeded = [result for (kind, _), result in results.items() if kind == SEEDS]
    # Those without a variation whose values are compared.
    plain = [one for one in working if one.reported and not one.vary]
    texts = [*texts_of_task(paper), *repository_texts(code.folder)] if plain else []
    return PaperProof(
        paper=paper.id,
        gold_runs=len(gold),
        failures=failures_of(paper, gold),
        exits_pass=bool(working) and results[EXIT, 0].passes,
        spreads=spreads_of(paper, gold),
        seeds=len(seeded),
        seed_spreads=spreads_of(paper, seeded),
        seed_failures=failures_of(paper, seeded),
        proposals=propose(plain, code.files, runs.all, texts),
        undescribed=[one.target for one in paper.functions if not (one.passage or one.description)],
        functions=[prove_function(code.paper, place, results, verdict) for place in places],
    )


def seeded_trials(
    code: Originals, commands: Sequence[GradedCommand], variable: str, epochs: int, log: str
) -> list[Trial]:
    """The original code with different values of a variable. `log` is the beginning of a path."""
    return [
        Trial(files=code.files, commands=commands, seeds={variable: seed}, log=Path(f"{log}-{seed}.log"))
        for seed in range(epochs)
    ]


def common_trials(code: Originals, epochs: int, logs: Path) -> dict[Key, Trial]:
    experiments = code.paper.experiments
    seeded = [one for one in experiments if one.reads_seed]
    epochs = epochs if seeded else 0
    trials: dict[Key, Trial] = {}
    for seed, trial in enumerate(seeded_trials(code, seeded, SEED_VARIABLE, epochs, f"{logs}/seed")):
        trials[SEEDS, seed] = trial
    for index, one in enumerate(experiments):
        trials[PROBES, index] = Trial(files=code.with_probes(), commands=[one], seeds=UNCOMPILED)
    trials[EXIT, 0] = Trial(files=dict.fromkeys(code.files, EXIT_LINE), commands=experiments)
    return trials


def stub_trials(code: Originals, places: Sequence[int]) -> dict[Key, Trial]:
    paper = code.paper
    return {
        (stub, place): Trial(
            files=code.stubbed(paper.functions[place], stub),
            commands=[one for _, one in needing(paper, place)],
        )
        for place in places
        if needing(paper, place)
        for stub in STUBS
    }


def needing(paper: Task, place: int) -> list[tuple[int, Experiment]]:
    """The experiments that need a function, with their places."""
    id = function_ids(paper)[place]
    return [(index, one) for index, one in enumerate(paper.experiments) if id in (one.functions or [id])]


def prove_function(paper: Task, place: int, results: Mapping[Key, RunResult], gold: Verdict) -> FunctionProof:
    """`paper` has the experiments that gold passes."""
    needed_by = needing(paper, place)
    executed_by = [one.name for index, one in needed_by if place in results[PROBES, index].executed]
    passing: list[str] = [stub for stub in STUBS if needed_by and results[stub, place].passes]
    return FunctionProof(
        id=function_ids(paper)[place],
        target=paper.functions[place].target,
        verdict=verdict_of(gold, executed_by, passing),
        executed_by=executed_by,
        not_executed_by=[one.name for _, one in needed_by if one.name not in executed_by],
        passing_stubs=passing,
        unaffected=[one.name for _, one in needed_by if results["raise", place].passed(one)],
    )


def verdict_of(gold: Verdict, executed_by: Sequence[str], passing_stubs: Sequence[str]) -> Verdict:
    if gold != "valid":
        return gold
    if not executed_by:
        return "not_executed"
    return "insensitive" if passing_stubs else "valid"
