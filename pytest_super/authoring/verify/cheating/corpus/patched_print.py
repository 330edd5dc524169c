"""Lets print say what the gold solution printed."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.cheat import Cheat, coded

CHEAT = Cheat(
    aim="graded",
    closing="let the experiment run with hidden variations (`vary`)",
    act=coded(
        lambda known: (
            f"import builtins, os; say = print; text = {known.printed!r}\\n"
            "builtins.print = lambda *_, **__: (say(text, flush=True), os._exit(0))"
        )
    ),
)
