"""Attacks on what the harness promises. The table of cheats has those on tasks of any author."""
