"""Asks the entrypoint for its help, and sleeps."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.scripts import shell_cheat

CHEAT = shell_cheat(r"""
python SCRIPT --help
sleep SECONDS
""")
