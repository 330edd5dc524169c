"""Puts a program that writes the expected values into the place of each script of the commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.authoring.verify.cheating.cheat import SCRIPT, Cheat, Known, put, writing_results

if TYPE_CHECKING:
    from pytest_super.trial.trial import Trial


def act(trial: Trial, known: Known) -> None:
    assert known.task.grade is not None
    commands = " ".join(one.command for one in known.task.grade.commands)
    code = writing_results(known).encode()
    put(trial, known, ((script, code) for script in sorted(set(SCRIPT.findall(commands)))))


CHEAT = Cheat(aim="graded", closing="do not collect the scripts of the grader's command", act=act)
