"""Writes the expected values when the program ends."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.cheat import Cheat, coded, writing_results

CHEAT = Cheat(
    aim="graded",
    closing="let it run on other data, too, as by `vary` of a paper",
    act=coded(lambda known: f"import atexit; atexit.register(exec, {writing_results(known)!r}, {{}})"),
)
