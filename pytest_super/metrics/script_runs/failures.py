"""The printed output of a step, and whether it says that a script failed."""

import posixpath
import re
from collections.abc import Iterator
from typing import Any

from pytest_super.metrics.matching.plain_text import without_escapes
from pytest_super.store.trajectory import Step

TRACEBACK = "Traceback (most recent call last)"

# Messages of shells and interpreters are short; a longer line is a script's own.
LINE_LIMIT = 1000

# Failures without a traceback: a script that does not parse, and a process that the cell shows as a value.
_ANYWHERE = re.compile(r"^(?:SyntaxError|IndentationError|TabError): |returncode=(?!0\b)-?\d", re.MULTILINE)
# Must be the whole line, because a script can print these words in a sentence of its own.
_KILLED = re.compile(
    r"(?:\S+: line \d+: +\d+ )?(?:Killed|Terminated|Aborted|Segmentation fault|Bus error|Illegal instruction"
    r"|Floating point exception)(?: +\(core dumped\))?(?: {2,}.*)?"
)
_NO_FILE = r"No such file or directory|Permission denied|Is a directory|(?:command )?not found|cannot execute"
_NO_START = r"can't open file|can't find '__main__'|No module named|Error while finding module"
_PYTHON = r"(?:\S*/)?(?:python|pypy)[\d.]*"


def is_failure(output: str, path: str) -> bool:
    """Whether `output` reports a failed run of the script at `path`.

    SUPER (B.2) counts any exception raised "according to printed output". So a traceback fails the run even
    if the script caught the exception and went on: the output looks the same.
    """
    if TRACEBACK in output or _ANYWHERE.search(output):
        return True
    refusal = _refusal(posixpath.basename(path))
    lines = [line for line in output.splitlines() if len(line) <= LINE_LIMIT]
    return any(refusal.match(line) or _KILLED.fullmatch(line) for line in lines)


def _refusal(script: str) -> re.Pattern[str]:
    """A line by which a script refuses its arguments, or a shell or interpreter cannot run the script."""
    name = rf"(?:\S*/)?{re.escape(script)}"
    cases = (
        rf"{name}: error: ",
        rf"[Uu]sage: {name} \[OPTIONS\]",
        rf"{name}: (?:line )?\d+: (?:.*syntax error|.*unexpected|{_PYTHON}: (?:command )?not found)",
        rf"(?:\S*/)?\S*sh: (?:(?:line )?\d+: )?(?:{name}|{_PYTHON}): .*(?:{_NO_FILE})",
        rf"(?:\S*/)?\S*sh: \d+: [Cc]an(?:no|')t open {name}",
        rf"{_PYTHON}: .*(?:{_NO_START})",
        rf"\w+: .*(?:{name}|{_PYTHON})['\u2019]?: (?:{_NO_FILE})",
    )
    return re.compile("|".join(f"(?:{case})" for case in cases))


def output_of(step: Step) -> str:
    # Published steps have no outputs, only the text that the agent was shown.
    texts = "".join(text for output in step.outputs for text in _texts(output)) or step.observation
    return without_escapes(texts).replace("\r\n", "\n").replace("\r", "\n") + "\n"


def _texts(output: dict[str, Any]) -> Iterator[str]:
    """The texts of one nbformat output. A stream continues the line on which the last one ended."""
    if "text" in output:
        yield "".join(output["text"])
    elif "traceback" in output:
        yield "\n".join(["", *output["traceback"], ""])
    elif "text/plain" in output.get("data", {}):
        yield "\n".join(["", "".join(output["data"]["text/plain"]), ""])
