"""Submits the answer, which it has seen somewhere, without a step."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.cheat import Cheat

CHEAT = Cheat(
    aim="accuracy",
    closing="grade by running (`grade`), because a number can be remembered",
    act=lambda _trial, known: known.task.answer,
    is_inherent=True,
)
