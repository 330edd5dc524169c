"""Returns the right values for the known calls, as from a table, and fails for all others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_super.authoring.verify.cheating.cheat import Cheat, Known, files_with, put

if TYPE_CHECKING:
    from pytest_super.trial.trial import Trial

# The shell puts its default in place of a variable.
DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")


def act(trial: Trial, known: Known) -> None:
    commands = [DEFAULT.sub(r"\1", one.command) for one in known.task.experiments]
    # After the script or the module of the last program of the line.
    calls = [command.rpartition("python ")[2].removeprefix("-m ").split()[1:] for command in commands]
    line = f"__import__('sys').argv[1:] in {calls!r} or {{}}['no such call']"
    put(trial, known, files_with(known, line, keeps_bodies=True))


CHEAT = Cheat(
    aim="graded",
    closing="let it run on other data, too, as by `vary` of a paper",
    act=act,
    papers_only=True,
)
