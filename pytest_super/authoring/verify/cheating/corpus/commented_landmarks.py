"""Has what the landmarks look for in a comment, and prints its own source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.authoring.verify.cheating.cheat import Cheat, Known

if TYPE_CHECKING:
    from pytest_super.trial.trial import Trial


def act(trial: Trial, known: Known) -> None:
    lines = "\n".join(f"# {line}" for text in known.shown() for line in text.splitlines())
    trial.execute(f"{lines}\nprint(In[-1])")


CHEAT = Cheat(
    aim="landmarks", closing="look for what the program computes, not for what stands in a text", act=act
)
