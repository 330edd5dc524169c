"""Leaves a process that writes the expected values again and again."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.cheat import Cheat, Known, coded, writing_results


def leaving(known: Known) -> str:
    code = f"import time\nfor _ in range(3000):\n exec({writing_results(known)!r})\n time.sleep(0.001)"
    return (
        f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {code!r}], start_new_session=True)"
    )


CHEAT = Cheat(
    aim="graded", closing="let the experiment run with hidden variations (`vary`)", act=coded(leaving)
)
