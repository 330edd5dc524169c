"""Runs `pytest-super generate`: opens the gateway, runs the generation, prints the report."""

from __future__ import annotations

import secrets
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

from pytest_super.authoring.generate.generation import Generation, GenerationSettings
from pytest_super.authoring.generate.prompts import read_prompts
from pytest_super.authoring.generate.record import CALLS, KEPT, REPORT
from pytest_super.authoring.generate.refusal import REASONS
from pytest_super.authoring.generate.repositories import read_all
from pytest_super.errors import SuperError
from pytest_super.model.client import GatewayModel
from pytest_super.model.completion import Model
from pytest_super.model.gateway_process import Gateway
from pytest_super.model.settings import SCRIPTED, ModelSettings
from pytest_super.report.live import LiveCommand
from pytest_super.store.run_folder import new_run_id
from pytest_super.words import one_line

INTERRUPTED = 130
WAITING = "waiting for the calls under way, which are paid: Ctrl-C again leaves at once"
# The gateway needs a limit of tokens for each task. Prompts are bounded, so this one is never reached.
TOKENS = 10_000_000


def generate(arguments: Namespace) -> int:
    """Exit status: 0 when each repository has its outcome, 1 when some have none, 130 after Ctrl-C.

    Raises SuperError for an error before the run, and for an error that ended it.
    """
    named = read_all(arguments.repositories, arguments.list)
    model = model_settings(arguments)
    prompts = read_prompts(arguments.prompts)
    gateway = Gateway(new_run_id(), model, secrets.token_hex(32))
    live = LiveCommand(lambda: progress(generation))
    settings = GenerationSettings(
        output=arguments.output,
        model=model.name,
        parameters=model.parameters,
        prompts=prompts,
        jobs=min(arguments.jobs, len(named)),
        open_model=partial(open_model, gateway, live),
        print_line=lambda line: live.print_line(one_line(line)),
        activity=live.activity,
    )
    try:
        with closing(Generation(named, settings)) as generation, live:
            return conclude(generation)
    finally:
        gateway.close()
        # A gateway removes its folder when it ends, but none has run if nothing was asked.
        with suppress(OSError):
            gateway.folder.rmdir()


def open_model(gateway: Gateway, live: LiveCommand, task: str) -> Model:
    """The model for one question about a task. The gateway starts with the first question."""
    activity = live.activities[task]
    activity.begin("model")
    return GatewayModel(
        gateway,
        task=task,
        epoch=1,
        rerun=0,
        token_limit=lambda: TOKENS,
        cost_limit=None,
        waits_for=activity.waits_for,
    )


def progress(run: Generation) -> str:
    kept = sum(outcome.outcome == KEPT for outcome in list(run.outcomes.values()))
    dollars = run.record.cost()
    cost = "" if dollars is None else f", ${dollars:.2f}"
    return f"{len(run.outcomes)}/{len(run.named)} repositories, {kept} kept{cost}"


def conclude(generation: Generation) -> int:
    """Run it and print the table, even when an error ended the run. Raises that error as SuperError."""
    # This is the second Ctrl-C. The first one is in `generation.error`.
    with suppress(KeyboardInterrupt):
        generation.run(interrupted=lambda: generation.settings.print_line(WAITING))
    for line in report_lines(generation):
        generation.settings.print_line(line)
    error = generation.error
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, SuperError):
        raise SuperError(f"stopped: {own_options(error)}")
    if error is not None:
        raise error
    return int(any(outcome.reason == "model_failed" for outcome in generation.outcomes.values()))


def report_lines(run: Generation) -> Iterator[str]:
    """The numbers of repositories that were kept and dropped, by reason."""
    outcomes = run.outcomes.values()
    reasons = Counter(outcome.reason for outcome in outcomes if outcome.outcome != KEPT)
    yield ""
    yield row("repositories", len(run.named))
    yield row("kept", len(outcomes) - reasons.total())
    yield row("dropped", reasons.total())
    for reason, meaning in REASONS.items():
        if reasons[reason]:
            yield row(f"  {reason}", reasons[reason], meaning)
    if left := len(run.named) - len(outcomes):
        yield row("not looked at", left)
    yield ""
    bought = len(run.record.answers) - run.record.earlier_answers
    yield f"{bought} answers of {run.settings.model}{cost(run)}"
    yield f"tasks and {REPORT}: {run.settings.output}"


def row(name: str, number: int, meaning: str = "") -> str:
    return f"{name:<24}{number:>6}  {meaning}".rstrip()


def cost(run: Generation) -> str:
    dollars = run.record.cost()
    return "" if dollars is None else f"; all runs into this folder have cost ${dollars:.4f}"


def model_settings(arguments: Namespace) -> ModelSettings:
    """Raises SuperError."""
    name = arguments.model
    if name.startswith(SCRIPTED):
        from pytest_super.model.scripted import model_of_script

        name = model_of_script(Path(name.removeprefix(SCRIPTED)).absolute())
    return ModelSettings(
        name=name,
        parameters=dict(arguments.model_arg),
        max_cost=arguments.max_cost,
        calls=str((arguments.output / CALLS).absolute()),
        record=str(arguments.record.absolute()) if arguments.record else None,
    )


def own_options(error: Exception) -> str:
    """The message with our names of the options, which are those of runs of pytest without `super-`."""
    return str(error).replace("--super-dir", "--output or --record").replace("--super-", "--")
