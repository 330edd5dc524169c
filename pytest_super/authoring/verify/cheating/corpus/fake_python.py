"""Runs the entrypoint by a shell script that is called python and only sleeps."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.scripts import shell_cheat

CHEAT = shell_cheat(r"""
mkdir -p bin
printf '#!/bin/sh\nsleep SECONDS\n' > bin/python
chmod +x bin/python
PATH=$PWD/bin:$PATH python SCRIPT
""")
