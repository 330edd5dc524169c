"""Checks that tasks can be solved, have one answer, and do not leak it."""
