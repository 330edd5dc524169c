"""Sandboxes that start where a prefix has ended, for all trials that have the same (SUPER, section 3.2).

The files are saved by the provider; Python's state is made anew by the cells that leave some. A snapshot is
named by all that its files depend on, holds nothing of an agent's, and is used only where what it gives has
been seen to be what the prefix gave.
"""
