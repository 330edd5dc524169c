"""Runs the entrypoint under a sitecustomize that sleeps and ends the program."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.scripts import shell_cheat

CHEAT = shell_cheat(r"""
mkdir -p site
echo 'import time, os; time.sleep(SECONDS); os._exit(0)' > site/sitecustomize.py
PYTHONPATH=site python SCRIPT
""")
