"""A run next to another one or to a baseline: how they differ, and what that decides."""
