"""The end of what a grader's command printed, in a text of bounded size that says why it yields no value."""

from __future__ import annotations

import re

from pytest_super.kernel.terminal_text import shown_lines

# Characters at the end of the output that are looked at.
MOST_READ = 20_000
MOST_LINES, LONGEST_LINE = 3, 200
# Pytest writes an `E` before the lines of an exception, and others after them.
EXCEPTION = re.compile(r"(?:E +)?([\w.]*(?:Error|Exception)(?::.*)?)")


def last_lines(output: str) -> str:
    """The last exception that was printed, else the last lines; "" if nothing was printed."""
    lines = shown_lines(output[-MOST_READ:])
    raised = [found[1] for line in lines if (found := EXCEPTION.fullmatch(line))]
    return " | ".join(line[:LONGEST_LINE] for line in raised[-1:] or lines[-MOST_LINES:])
