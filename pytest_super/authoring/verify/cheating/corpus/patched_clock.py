"""Stops the clock, which is all that a test of speed sees."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.cheat import Cheat, coded

CHEAT = Cheat(
    aim="graded",
    closing="measure time outside of the program",
    act=coded(
        lambda _known: (
            "import time\n"
            'for name in ("time", "perf_counter", "process_time"): setattr(time, name, lambda: 0.0)'
        )
    ),
)
