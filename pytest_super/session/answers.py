"""The run whose answers are given again: which one it is, and whether it can be used."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.errors import SuperError
from pytest_super.store.answers import FILE
from pytest_super.store.json_lines import UNREADABLE
from pytest_super.store.stored_runs import find_run

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_super.session.settings import Settings


def with_answers(settings: Settings) -> Settings:
    """The settings with the folder of the run whose answers are given again, and its model.

    Raises pytest.UsageError if it cannot be used.
    """
    if not settings.answers:
        if settings.needs_answers:
            raise pytest.UsageError("--super-answers-miss=fail needs --super-answers=RUN")
        return settings
    try:
        folder = find_run(settings.directory, settings.answers)
        return replace(settings, answers=str(folder), model=model_of(folder, settings))
    except SuperError as error:
        raise pytest.UsageError(f"--super-answers={settings.answers}: {error}") from None


def read_facts(folder: Path) -> dict[str, Any]:
    """What run.json says. Raises SuperError."""
    try:
        return dict(json.loads((folder / "run.json").read_text(encoding="utf-8")))
    except UNREADABLE as error:
        raise SuperError(f"{folder / 'run.json'} cannot be read: {error}") from None


def model_of(folder: Path, settings: Settings) -> str:
    """The model whose answers a run has. Raises SuperError if this run cannot take them."""
    facts = read_facts(folder)
    if origin := facts.get("answers"):
        # Otherwise a verdict could choose the answers that are kept.
        raise SuperError(f"the run {folder.name} got its answers from {origin}: name that one")
    if not any(folder.glob(f"trials/*/*/{FILE}")):
        raise SuperError(f"the run {folder.name} has no answers: no trial asked a model, or none were kept")
    model = str(facts.get("model"))
    if settings.model not in (None, model):
        raise SuperError(f"its model was {model}, not {settings.model}: leave out one of the options")
    if settings.model is None and not settings.needs_answers:
        raise SuperError(f"what it did not ask is asked now, so name its model: --super-model={model}")
    return model
