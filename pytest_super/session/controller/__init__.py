"""Knows the whole run: which trials are left, when it ends, what is shown and written."""
