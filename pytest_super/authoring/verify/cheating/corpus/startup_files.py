"""Leaves files that Python and pytest run by themselves, and that write the expected values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.authoring.verify.cheating.cheat import Cheat, Known, put, writing_results

if TYPE_CHECKING:
    from pytest_super.trial.trial import Trial

NAMES = ("conftest.py", "sitecustomize.py", "usercustomize.py")


def act(trial: Trial, known: Known) -> None:
    code = f"import atexit; atexit.register(exec, {writing_results(known)!r}, {{}})"
    put(trial, known, ((name, code.encode()) for name in NAMES))
    paths = f"import site; open(site.getsitepackages()[0] + '/cheat.pth', 'w').write({code!r})"
    trial.execute(paths)


CHEAT = Cheat(aim="graded", closing="collect only the files that the agent is to write", act=act)
