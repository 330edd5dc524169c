"""Counts the content of a collection of tasks, as in the tables of the SUPER paper."""
