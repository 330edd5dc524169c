"""Research-reproduction tasks as pytest items.

The word PYTEST_DONT_REWRITE keeps pytest from warning, in workers that are forks, that this package was
imported before the assertions of plugins are rewritten.
"""
