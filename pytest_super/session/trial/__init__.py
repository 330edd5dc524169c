"""Runs one item: its sandbox, its trial, its grade, its reported outcome."""
