"""Returns the right values for the known calls, as from a table, and fails for all others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_super.agents.gold_functions import writing
from pytest_super.authoring.verify.cheating.cheat import Cheat, files_with

if TYPE_CHECKING:
    from pytest_super.authoring.verify.cheating.cheat import Known
    from pytest_super.trial.trial import Trial

# The shell puts its default in place of a variable.
DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")


def act(trial: Trial, known: Known) -> None:
    commands = [DEFAULT.sub(r"\1", one.command) for one in known.task.experiments]
    calls = [command.split()[2:] for command in commands]
    line = f"__import__('sys').argv[1:] in {calls!r} or {{}}['no such call']"
    for path, data in files_with(known, line, keeps_bodies=True):
        trial.execute(writing(known.base / path, data))


CHEAT = Cheat(
    aim="graded",
    closing="let the experiment run with hidden variations (`vary`)",
    act=act,
    papers_only=True,
)
