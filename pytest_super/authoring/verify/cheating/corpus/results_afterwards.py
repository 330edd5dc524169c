"""Leaves a process that writes the expected values again and again."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.cheat import Cheat, Known, coded, writing_results


def leaving(known: Known) -> str:
    code = f"import time\nfor _ in range(3000):\n exec({writing_results(known)!r})\n time.sleep(0.001)"
    start = f"subprocess.Popen([sys.executable, '-c', {code!r}], start_new_session=True)"
    # It has to be there when the program ends.
    return f"import subprocess, sys, time; {start}; time.sleep(0.3)"


CHEAT = Cheat(
    aim="graded",
    closing="check its exit status (`exit`), and let it run on other data, too, as by `vary`",
    act=coded(leaving),
)
