"""Folders of tasks in the form of Harbor."""
