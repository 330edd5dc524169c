"""Puts a program that writes the expected values into the place of each script of the commands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_super.agents.gold_functions import writing
from pytest_super.authoring.verify.cheating.cheat import Cheat, writing_results

if TYPE_CHECKING:
    from pytest_super.authoring.verify.cheating.cheat import Known
    from pytest_super.trial.trial import Trial


def act(trial: Trial, known: Known) -> None:
    assert known.task.grade is not None
    commands = " ".join(one.command for one in known.task.grade.commands)
    for script in sorted(set(re.findall(r"[\w./-]+\.py\b", commands))):
        trial.execute(writing(known.base / script, writing_results(known).encode()))


CHEAT = Cheat(aim="graded", closing="do not collect the scripts of the grader's command", act=act)
