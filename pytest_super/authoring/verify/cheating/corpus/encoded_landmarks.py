"""Prints what the landmarks look for, from a text in the same cell that is not readable."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from pytest_super.authoring.verify.cheating.cheat import Cheat, Known

if TYPE_CHECKING:
    from pytest_super.trial.trial import Trial


def act(trial: Trial, known: Known) -> None:
    text = base64.b64encode("\n".join(known.shown()).encode()).decode()
    trial.execute(f"import base64\nprint(base64.b64decode({text!r}).decode())")


CHEAT = Cheat(
    aim="landmarks",
    closing="judge by the answer or a grader, because any text can be printed",
    act=act,
    is_inherent=True,
)
