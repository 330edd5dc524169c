"""Ends the program without an error."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.cheat import Cheat, coded

CHEAT = Cheat(
    aim="graded",
    closing="let the grader read a value that the program computes",
    act=coded(lambda _known: "import os; os._exit(0)"),
)
