"""Texts in a request that differ between two runs of the same agent, and say nothing.

Two requests that differ in them alone are taken for equal. That is not exact, because a model can use such a
text: so it counts only where no recorded answer of the trial has it, and results that rest on it say so.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from pytest_super.kernel.providers import PREFIX


@dataclass(frozen=True)
class Fold:
    reason: str
    pattern: re.Pattern[str]
    """Its only group is what is hidden."""


# Behind it is what `tempfile` makes up.
AGENT_FOLDER = "pytest-super-agent-"
ANYWHERE = (
    Fold("the directory of a program on the host", re.compile(rf"{AGENT_FOLDER}([a-z0-9_]{{8}})(?!\w)")),
)
FOLDS = (
    *ANYWHERE,
    Fold("each sandbox on this machine has a new folder", re.compile(rf"/{PREFIX}([0-9a-f]{{12}})(?!\w)")),
    # Not the number alone, because an answer can have a short one by chance.
    Fold("a warning in a cell shows the kernel's process id", re.compile(r"/(ipykernel_\d+)(?=/\d+\.py\b)")),
    Fold("Codex numbers each output of a command", re.compile(r"^Chunk ID: ([0-9a-f]{6})$", re.MULTILINE)),
    Fold(
        "Claude Code and Gemini CLI tell the day on which they run",
        re.compile(r"Today's date is ((?:[A-Z][a-z]+, [A-Z][a-z]+ \d{1,2}, \d{4})|\d{4}-\d\d-\d\d)"),
    ),
    # With a fraction, because a limit that an agent states has none.
    Fold("how long a command took", re.compile(r"(?<![\w.])(\d+\.\d+ ?(?:s|sec|secs|seconds|ms))(?!\w)")),
    Fold(
        "the speed of a download or of a loop",
        re.compile(r"(?<![\w.])(\d+(?:\.\d+)? ?(?:[kKMG]i?B/s|it/s|s/it))(?!\w)"),
    ),
    Fold("how much time a progress bar has left", re.compile(r"(?<!\d)(\d+:\d\d(?::\d\d)?<[\d:?]+)")),
)
OF_SYSTEM = (
    *ANYWHERE,
    Fold(
        "Claude Code tells its provider its version, for the bill",
        re.compile(r"^x-anthropic-billing-header: cc_version=([^;\n]+);", re.MULTILINE),
    ),
)
HIDDEN = "…"
# Most texts have none of these.
MAY_HAVE = re.compile(r"\.\d+ ?m?s|/s|s/it|:\d\d<|Chunk ID:|Today's|cc_version=|/ipykernel_|" + AGENT_FOLDER)


# A trial sends the same texts with each call.
@lru_cache(maxsize=1024)
def fold(text: str, folds: tuple[Fold, ...] = FOLDS) -> tuple[str, tuple[str, ...]]:
    """The text without what is hidden, and that."""
    if not folds or not MAY_HAVE.search(text):
        return text, ()
    hidden: list[str] = []

    def hide(found: re.Match[str]) -> str:
        hidden.append(found[1])
        start, end = found.span(1)
        return f"{found[0][: start - found.start()]}{HIDDEN}{found[0][end - found.start() :]}"

    for one in folds:
        text = one.pattern.sub(hide, text)
    return text, tuple(hidden)
