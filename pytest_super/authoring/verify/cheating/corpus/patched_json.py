"""Lets json.dump write the expected values."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.cheat import Cheat, coded

CHEAT = Cheat(
    aim="graded",
    closing="let the experiment run with hidden variations (`vary`)",
    act=coded(
        lambda known: (
            f"import json; known = {known.result_files()!r}\\n"
            'json.dump = lambda _value, file, **_: file.write(known.get(file.name, "{}"))'
        )
    ),
)
