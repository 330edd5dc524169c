"""Prints what the landmarks look for, from a text in the same cell."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.cheat import Cheat

CHEAT = Cheat(
    aim="landmarks",
    closing="look for what the program computes, not for what stands in a text",
    act=lambda trial, known: trial.execute(f"print({chr(10).join(known.shown())!r})") and None,
)
