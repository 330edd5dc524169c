"""Writes the files that the grader reads, in its own sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.authoring.verify.cheating.cheat import Cheat, Known, put

if TYPE_CHECKING:
    from pytest_super.trial.trial import Trial


def act(trial: Trial, known: Known) -> None:
    put(trial, known, ((path, text.encode()) for path, text in known.result_files().items()))


CHEAT = Cheat(aim="graded", closing="grade in a fresh sandbox (`where: fresh`)", act=act)
