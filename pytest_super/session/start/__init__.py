"""Decides what a run will do before its first trial: items, what it goes on from, what it refuses."""
