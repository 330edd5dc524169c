"""Writes and prints the expected values, and ends the program."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.cheat import Cheat, coded, writing_results

CHEAT = Cheat(
    aim="graded",
    closing="let it run on other data, too, as by `vary` of a paper",
    act=coded(lambda known: writing_results(known) + "import os; os._exit(0)"),
)
