"""Puts a script that only sleeps into the place of the entrypoint, and runs it."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.scripts import shell_cheat

CHEAT = shell_cheat(r"""
echo 'import time; time.sleep(SECONDS)' > SCRIPT
python SCRIPT
""")
