"""Proves the papers of the set functions: right code passes, and stubs do not."""
