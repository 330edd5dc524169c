"""Runs `pytest-super generate`: opens the gateway, runs the generation, prints the report."""

from __future__ import annotations

import json
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_super.authoring.generate import report
from pytest_super.authoring.generate.generation import Generation, GenerationSettings
from pytest_super.authoring.generate.prompts import read_prompts
from pytest_super.authoring.generate.record import CALLS
from pytest_super.authoring.generate.repositories import read_all
from pytest_super.errors import SuperError
from pytest_super.model.client import GatewayModel
from pytest_super.model.gateway_process import Gateway
from pytest_super.model.redaction import may_hold_secret
from pytest_super.model.settings import SCRIPTED, ModelSettings
from pytest_super.report.terminal import one_line
from pytest_super.store.results import new_run_id

if TYPE_CHECKING:
    from argparse import Namespace

    from pytest_super.model.completion import Model

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
    models = Models(model)
    settings = GenerationSettings(
        output=arguments.output,
        model=model.name,
        parameters=model.parameters,
        prompts=read_prompts(arguments.prompts),
        jobs=min(arguments.jobs, len(named)),
        open_model=models.open,
        print_line=print_line,
    )
    generation = Generation(named, settings)
    try:
        return conclude(generation)
    finally:
        models.close()
        generation.close()


def conclude(generation: Generation) -> int:
    """Run it and print the table, even when an error ended the run. Raises that error as SuperError."""
    # This is the second Ctrl-C. The first one is in `generation.error`.
    with suppress(KeyboardInterrupt):
        generation.run(interrupted=lambda: print_line(WAITING))
    for line in report.lines(generation):
        print_line(line)
    error = generation.error
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, SuperError):
        # The message names options as runs of pytest know them.
        raise SuperError(f"stopped: {str(error).replace('--super-', '--')}")
    if error is not None:
        raise error
    return int(any(outcome.reason == "model_failed" for outcome in generation.outcomes.values()))


def print_line(line: str) -> None:
    # In one call, so that the lines of several threads do not mix.
    sys.stdout.write(f"{one_line(line)}\n")
    sys.stdout.flush()


def model_settings(arguments: Namespace) -> ModelSettings:
    """Raises SuperError."""
    name = arguments.model
    if name.startswith(SCRIPTED):
        from pytest_super.model.scripted import ScriptedProvider

        path = Path(name.removeprefix(SCRIPTED)).absolute()
        # Only to report a wrong script before the run begins.
        ScriptedProvider(path)
        name = f"{SCRIPTED}{path}"
    return ModelSettings(
        name=name,
        parameters=dict(map(parameter, arguments.model_arg)),
        max_cost=arguments.max_cost,
        calls=str((arguments.output / CALLS).absolute()),
        record=str(arguments.record.absolute()) if arguments.record else None,
    )


def parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise SuperError(f"--model-arg={text}: write it as KEY=VALUE")
    # Parameters are written to disk.
    if may_hold_secret(text):
        raise SuperError(f"--model-arg={name}: keys come from the environment, as for litellm")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


class Models:
    """The models of all tasks, through one gateway, which is started for the first question."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._gateway: Gateway | None = None
        self._opening = threading.Lock()

    def open(self, task: str) -> Model:
        """Raises ModelError."""
        with self._opening:
            if self._gateway is None:
                self._gateway = Gateway(new_run_id(), self._settings)
        return GatewayModel(
            self._gateway, task=task, epoch=1, rerun=0, token_limit=lambda: TOKENS, cost_limit=None
        )

    def close(self) -> None:
        if self._gateway is not None:
            self._gateway.close()
