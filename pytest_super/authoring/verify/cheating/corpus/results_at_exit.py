"""Writes the expected values when the program ends."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.cheat import Cheat, coded, writing_results

CHEAT = Cheat(
    aim="graded",
    closing="check its exit status (`exit`), and let it run on other data, too, as by `vary`",
    act=coded(lambda known: f"import atexit; atexit.register(exec, {writing_results(known)!r}, {{}})"),
)
