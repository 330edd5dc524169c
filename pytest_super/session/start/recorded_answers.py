"""The run whose answers are given again: which one it is, and whether it can be used."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_super.errors import SuperError
from pytest_super.session.settings import Settings, usage_errors
from pytest_super.store.answers import AnswerStore
from pytest_super.store.baseline_answers import archive_of
from pytest_super.store.stored_runs import find_run, run_folders


def with_answers(settings: Settings) -> Settings:
    """The settings with the run whose answers are given again, and its model.

    Without --super-answers it is that of the baseline, if its answers are beside it and of the same model.
    Raises pytest.UsageError if answers that were asked for cannot be used.
    """
    if not settings.answers:
        found = coupled(settings) if settings.baseline and settings.is_recorded else settings
        if settings.needs_answers and not found.answers:
            raise pytest.UsageError("--super-answers-miss=fail needs --super-answers=RUN")
        return found
    with usage_errors(f"--super-answers={settings.answers}"):
        if settings.answers.endswith(".zip"):
            return taking(settings, Path(settings.answers).absolute())
        return taking(settings, run_named(settings.directory, settings.answers))


def run_named(directory: Path, name: str) -> Path:
    """The folder of a run; `latest` is the newest one that has asked its model itself. Raises SuperError."""
    if name == "latest":
        for folder in run_folders(directory):
            with suppress(SuperError):
                store = AnswerStore(folder)
                if not store.facts().get("answers") and any(store.files()):
                    return folder
    return find_run(directory, name)


def coupled(settings: Settings) -> Settings:
    assert settings.baseline is not None
    archive = archive_of(settings.baseline)
    # A run without a model asks nothing, unless the record names it.
    asks = settings.model is not None or settings.needs_answers
    if not asks or not archive.is_file():
        return settings
    try:
        return taking(settings, archive)
    except SuperError as error:
        raise pytest.UsageError(f"{archive.name}: {error}, or use --super-answers=none") from None


def taking(settings: Settings, path: Path) -> Settings:
    """Raises SuperError if the run cannot take answers from there."""
    store = AnswerStore(path)
    facts = store.facts()
    run, model = str(facts.get("id")), str(facts.get("model"))
    forked_from = str(facts.get("forked_from") or "")
    if forked_from and settings.is_gated:
        raise SuperError(
            "no gate is decided by a fork: leave out --super-baseline, --super-fail-under, --super-must-solve"
        )
    if origin := facts.get("answers"):
        # Otherwise a verdict could choose the answers that are kept.
        raise SuperError(f"the run {run} got its answers from {origin}: name that one")
    if next(store.files(), None) is None:
        raise SuperError(f"the run {run} has no answers: no trial asked a model, or none were kept")
    if settings.model not in (None, model) and not forked_from:
        raise SuperError(f"its model was {model}, not {settings.model}: leave out one of the options")
    if settings.model is None and not settings.needs_answers:
        raise SuperError(f"what it did not ask is asked now, so name its model: --super-model={model}")
    model = settings.model or model
    return replace(settings, answers=str(path), answers_of=run, forked_from=forked_from, model=model)
