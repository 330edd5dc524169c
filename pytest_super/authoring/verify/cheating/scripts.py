"""Cells that do as if they ran the entrypoint of a task."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_super.authoring.verify.cheating.cheat import Cheat, Known

if TYPE_CHECKING:
    from pytest_super.trial.trial import Trial

CLOSING = "let the script write a file that a grader reads, or judge by the answer"


def shell_cheat(code: str) -> Cheat:
    """Bash, with SCRIPT for the entrypoint, NAME for its file, and SECONDS for how long it must run."""

    def act(trial: Trial, known: Known) -> None:
        entrypoint = known.task.entrypoint
        assert entrypoint is not None
        script = known.base / PurePosixPath(entrypoint.path)
        values = {
            "SCRIPT": str(script),
            "NAME": script.name,
            "SECONDS": str(entrypoint.min_seconds + 1),
        }
        text = code
        for name, value in values.items():
            text = text.replace(name, shlex.quote(value))
        trial.execute(f"%%bash\n{text.strip()}\n")

    return Cheat(aim="script_executed", closing=CLOSING, act=act)
