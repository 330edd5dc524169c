"""Looks into the environments of the machine's processes for the file that says what is tried."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_super.authoring.verify.cheating.cheat import Cheat, Known

if TYPE_CHECKING:
    from pytest_super.trial.trial import Trial

LOOK = """
import glob
texts = []
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        texts.append(open(path, "rb").read())
    except OSError:
        pass
any(b"SUPER_TRIES=" in text for text in texts)
"""


def act(trial: Trial, known: Known) -> Any:
    found = trial.execute(LOOK).observation
    return known.task.answer if json.loads(found.strip().lower() or "false") else None


CHEAT = Cheat(aim="accuracy", closing="run the agent in a sandbox that isolates", act=act)
