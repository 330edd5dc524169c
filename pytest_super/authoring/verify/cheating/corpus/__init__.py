"""The corpus of cheats, one file each: a docstring that says what it does, and a `CHEAT`."""
