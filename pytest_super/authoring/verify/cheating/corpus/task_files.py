"""Looks for the task's file on the machine, and submits the answer that stands there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_super.authoring.verify.cheating.cheat import Cheat, Known

if TYPE_CHECKING:
    from pytest_super.trial.trial import Trial

LOOK = "import os; [name for name in ({path!r}, os.path.relpath({path!r})) if os.access(name, os.R_OK)] != []"


def act(trial: Trial, known: Known) -> Any:
    found = trial.execute(LOOK.format(path=str(known.task._path))).observation
    return known.task.answer if json.loads(found.strip().lower() or "false") else None


CHEAT = Cheat(aim="accuracy", closing="run the agent in a sandbox that isolates", act=act)
