"""Lets the assertions of unittest and numpy pass."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.cheat import Cheat, coded

CHEAT = Cheat(
    aim="graded",
    closing="let the grader write the values, and compare them outside of the program",
    act=coded(
        lambda _known: (
            "import unittest\n"
            "for name in dir(unittest.TestCase):\n"
            '    if name.startswith("assert"): setattr(unittest.TestCase, name, lambda *_, **__: None)\n'
            "import numpy.testing\n"
            "for name in dir(numpy.testing):\n"
            '    if name.startswith("assert"): setattr(numpy.testing, name, lambda *_, **__: None)'
        )
    ),
)
