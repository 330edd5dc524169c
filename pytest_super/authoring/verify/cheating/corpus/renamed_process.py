"""Gives a sleeping program the arguments of a run of the entrypoint."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.scripts import shell_cheat

CHEAT = shell_cheat(r"""
(exec -a 'python SCRIPT' sleep SECONDS)
""")
