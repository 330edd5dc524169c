"""Runs the entrypoint so that it fails, and hides that."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.scripts import shell_cheat

CHEAT = shell_cheat(r"""
(sleep SECONDS | python SCRIPT --no-such-option) 2> /dev/null || true
""")
