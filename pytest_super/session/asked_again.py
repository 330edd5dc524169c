"""Asks a few recorded requests again before a run: has the model behind its name changed?

A recorded answer has no fingerprint of today. So a change of the model would be seen only in the trials that
ask it, and the agent would be blamed for it.
"""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_super.errors import InfrastructureError, SuperError
from pytest_super.model.protocols.registry import PROTOCOLS
from pytest_super.model.settings import SCRIPTED
from pytest_super.store.answers import AnswerStore, read_answers
from pytest_super.words import counted, named

if TYPE_CHECKING:
    from pytest_super.model.gateway_process import Gateway
    from pytest_super.session.run import Run

# So many trials' first requests, which are the shortest.
MOST_ASKED = 10
MOST_NAMED = 3


class Served(NamedTuple):
    """By what an answer was given, as far as the provider says."""

    model: str
    fingerprint: str | None

    def __str__(self) -> str:
        return f"{self.model} ({self.fingerprint})" if self.fingerprint else self.model


def asked_again(run: Run) -> Run:
    """The run, without recorded answers if another model gives them now, and with a note for its header.

    Raises pytest.UsageError if the record cannot be read.
    """
    settings = run.settings
    # What a fork begins with is its past, whichever model has said it.
    is_past = bool(settings.forked_from) or settings.needs_answers
    if not settings.answers or is_past or str(settings.model).startswith(SCRIPTED):
        return run
    try:
        before, requests = read_record(AnswerStore(Path(settings.answers)), settings.answers_of)
    except SuperError as error:
        raise pytest.UsageError(f"{error}; --super-answers=none does without a record") from None
    now = ask_again(run, requests)
    if not now:
        return replace(run, answers_note="not asked again, because the model did not answer")
    if others := sorted(map(str, now - before)):
        was = named(sorted(map(str, before)), MOST_NAMED)
        note = f"not given again: the model is now {named(others, MOST_NAMED)}, and was {was}"
        return replace(run, settings=replace(settings, answers="", answers_of=""), answers_note=note)
    known = "" if any(served.fingerprint for served in now) else ", but the provider tells no fingerprint"
    asked = counted(len(requests), "request")
    return replace(run, answers_note=f"{asked} asked again, same model{known}")


def read_record(store: AnswerStore, seed: str) -> tuple[set[Served], list[dict[str, Any]]]:
    """By what all answers were given, and the first requests of some trials. Raises SuperError."""
    files = list(store.files())
    chosen = set(random.Random(seed).sample(range(len(files)), min(MOST_ASKED, len(files))))
    served: set[Served] = set()
    requests = []
    for number, file in enumerate(files):
        trial = read_answers(file)
        ends = [call.end for call in trial.calls.values() if "answer" in call.end]
        served |= {Served(str(end["model"]), end["fingerprint"]) for end in ends}
        if number in chosen and trial.calls:
            requests.append(trial.asked(min(trial.calls)))
    return served, requests


def ask_again(run: Run, requests: list[dict[str, Any]]) -> set[Served]:
    """By what these are answered now; empty if they are not."""
    # Not at the top, for the many runs without recorded answers.
    from pytest_super.model.gateway_process import Gateway

    # What this costs is booked in the run's calls.
    run.path.mkdir(parents=True, exist_ok=True)
    model = replace(run.model_settings(), answers=None, record=None)
    with (
        closing(Gateway(f"{run.id}-again", model, run.gateway_token)) as gateway,
        ThreadPoolExecutor(MOST_ASKED) as pool,
    ):
        found = pool.map(lambda numbered: ask(gateway, *numbered), enumerate(requests))
        return {served for served in found if served is not None}


def ask(gateway: Gateway, number: int, request: dict[str, Any]) -> Served | None:
    from pytest_super.model.client import GatewayModel

    protocol = next(each for each in PROTOCOLS if each.name == request["protocol"])
    body = {name: value for name, value in request.items() if name not in ("protocol", "model")}
    model = GatewayModel(
        gateway, task="answers", epoch=0, rerun=number, token_limit=lambda: 10**9, cost_limit=None
    )
    try:
        answer = model.forward(protocol.routes[0], json.dumps(body).encode())
    except InfrastructureError:
        return None
    return None if "error" in answer else Served(answer["model"], answer["fingerprint"])
