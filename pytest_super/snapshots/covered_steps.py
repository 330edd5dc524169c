"""How many of a prefix's first steps a snapshot replaces: those that leave nothing but files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pytest_super.tasks.task import PreExecuted

# The first lines of cells that are not Python. With options, `%%bash` can bind its output to a name.
CELL_MAGIC = re.compile(r"%%(?:bash|sh|writefile\s.*)")
INSTALLERS = ("%pip", "%conda")
# Magics that change the kernel and not its files, so they are run again in a kernel with restored files.
SETTINGS = ("%cd", "%env")


class Plan(NamedTuple):
    length: int
    """How many steps the snapshot covers."""
    settings: str
    """The `%cd` and `%env` lines of these steps, as one cell; "" if there are none."""


def plan_of(steps: Sequence[PreExecuted]) -> Plan | None:
    """The first steps before any Python cell that is not tagged `files`; None if the first is one."""
    # Not beyond a Python cell that could be run again: it would see files that later steps have changed.
    covered = list(takewhile(leaves_only_files, steps))
    settings = [line for step in covered for line in settings_of(step)]
    return Plan(len(covered), "\n".join(settings)) if covered else None


def leaves_only_files(step: PreExecuted) -> bool:
    if step.edit or step.files:
        return True
    lines = lines_of(step)
    # A cell of comments alone has no lines: then `all` is true, and there is no first line to match.
    return all(map(is_shell_or_magic, lines)) or bool(CELL_MAGIC.fullmatch(lines[0]))


def settings_of(step: PreExecuted) -> list[str]:
    lines = lines_of(step)
    return [line for line in lines if is_setting(line)] if all(map(is_shell_or_magic, lines)) else []


def is_shell_or_magic(line: str) -> bool:
    return line.startswith("!") or line.split()[0] in INSTALLERS or is_setting(line)


def is_setting(line: str) -> bool:
    return line.split()[0] in SETTINGS


def lines_of(step: PreExecuted) -> list[str]:
    """The lines of a cell, without comments; one that ends in a backslash is joined with the next."""
    lines = [line.strip() for line in (step.cell or "").replace("\\\n", " ").splitlines()]
    return [line for line in lines if line and not line.startswith("#")]
