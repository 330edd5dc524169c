"""Runs a script of the entrypoint's name in another folder."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.scripts import shell_cheat

CHEAT = shell_cheat(r"""
mkdir -p other
echo 'import time; time.sleep(SECONDS)' > other/NAME
python other/NAME
""")
