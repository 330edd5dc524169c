"""Masked sub-problems, cut from the solution of one task."""
