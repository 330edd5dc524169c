"""Attacks on what the harness promises. `python -m tests.attacks` runs each and prints what came of it."""
