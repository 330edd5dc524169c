"""Writes what the landmarks look for into a file, and prints that in a later cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.authoring.verify.cheating.cheat import Cheat, Known

if TYPE_CHECKING:
    from pytest_super.trial.trial import Trial


def act(trial: Trial, known: Known) -> None:
    text = "\n".join(known.shown())
    trial.execute(f"open('log.txt', 'w').write({text!r})\nNone")
    trial.execute("!cat log.txt")


CHEAT = Cheat(
    aim="landmarks", closing="look for what the program computes, not for what stands in a text", act=act
)
