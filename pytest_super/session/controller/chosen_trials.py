"""Chooses one of several trials of each item of a paper by asking the model, which does not see the gold.

Published as AutoExperiment's verifier (arXiv 2506.19724), whose choice is only printed there.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_super.errors import InfrastructureError
from pytest_super.functions.bounded import function_texts
from pytest_super.functions.source import SourceError, by_file
from pytest_super.gate.figures import without_interrupted
from pytest_super.grading.collected import contents
from pytest_super.model.completion import BudgetSpentError, FilteredError, ModelError
from pytest_super.model.relay import AnyGateway
from pytest_super.report.repeats import candidates
from pytest_super.report.summary import Group
from pytest_super.session.run import Run
from pytest_super.session.trial.grading import SPLICED
from pytest_super.session.trial.models import running_gateway
from pytest_super.store.results import TrialResult

TOKENS = 200_000
QUESTIONS_AT_ONCE = 8
CANDIDATE_CHARACTERS = 20_000
# No trial has this epoch: the question is none of theirs.
EPOCH = 0
QUESTION = (
    "Several programmers have written the same missing functions of research code. Which version is most "
    "likely right? One that does not run is not. Think, and end your answer with the number of one version."
)
_NUMBER = re.compile(r"\d+")


def choose_by_model(
    config: pytest.Config, run: Run, results: Iterable[TrialResult], folder: Path
) -> dict[str, int]:
    """The epoch of the chosen trial of each item. `folder` is the run's. Raises InfrastructureError."""
    items = candidates(Group(results=without_interrupted(results)))
    if not items:
        return {}
    gateway = running_gateway(config, run)
    with ThreadPoolExecutor(QUESTIONS_AT_ONCE) as pool:
        epochs = pool.map(lambda trials: chosen_epoch(gateway, trials, folder), items)
        return {trials[0].id: epoch for trials, epoch in zip(items, epochs, strict=True)}


def chosen_epoch(gateway: AnyGateway, trials: Sequence[TrialResult], folder: Path) -> int:
    from pytest_super.model.client import GatewayModel

    model = GatewayModel(
        gateway, task=trials[0].id, epoch=EPOCH, rerun=0, token_limit=lambda: TOKENS, cost_limit=None
    )
    versions = [f"Version {number}:\n{version(trial, folder)}" for number, trial in enumerate(trials, 1)]
    text = "\n\n".join([QUESTION, *versions])
    try:
        answer = model.complete([{"role": "user", "content": text}]).text
    except FilteredError:
        answer = ""
    except (ModelError, BudgetSpentError) as error:
        raise InfrastructureError(f"the model could not choose among epochs: {error}") from error
    numbers = [int(found) for found in _NUMBER.findall(answer)[-1:]]
    index = numbers[0] - 1 if numbers and 1 <= numbers[0] <= len(trials) else 0
    return trials[index].epoch


def version(trial: TrialResult, folder: Path) -> str:
    """The functions as the agent wrote them, and what the experiments have yielded."""
    yielded = [
        f"{value['command']}: {value['name']}: {value['why'] or value['found']}" for value in trial.graded
    ]
    try:
        code = "\n".join(functions_in(trial, folder / trial.folder / SPLICED))
    except (OSError, tarfile.TarError, SourceError) as error:
        code = f"They cannot be read: {error}"
    return "\n".join([code[:CANDIDATE_CHARACTERS], "What the experiments yield:", *yielded])


def functions_in(trial: TrialResult, archive: Path) -> Iterator[str]:
    """Raises OSError, tarfile.TarError, SourceError and InfrastructureError."""
    assert trial.masked is not None
    with tarfile.open(archive) as tar:
        # Without the folder of the repository.
        files = {entry.name.partition("/")[2]: contents(tar, entry) for entry in tar}
    for path, names in by_file(trial.masked["targets"]).items():
        if path not in files:
            raise SourceError(f"{path}: the file is not there")
        yield from function_texts(path, files[path], dict.fromkeys(one.partition("@")[0] for one in names))
