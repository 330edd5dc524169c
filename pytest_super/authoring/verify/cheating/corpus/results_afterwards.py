"""Leaves a process that writes the expected values again and again."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.cheat import Cheat, coded, writing_results

CHEAT = Cheat(
    aim="graded",
    closing="let the experiment run with hidden variations (`vary`)",
    act=coded(
        lambda known: (
            "import subprocess, sys; code = "
            + repr(
                f"import time\\nfor _ in range(50):\\n time.sleep(0.1)\\n exec({writing_results(known)!r})"
            )
            + '; subprocess.Popen([sys.executable, "-c", code], start_new_session=True)'
        )
    ),
)
