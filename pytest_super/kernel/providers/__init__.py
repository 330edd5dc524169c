"""The kinds of sandboxes."""

PREFIX = "super-"
"""The names of sandboxes' folders on this machine begin with it."""
