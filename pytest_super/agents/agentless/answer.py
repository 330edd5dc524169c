"""The code in an answer of the model, put into the file from which the function is missing."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

from pytest_super.functions.bounded import splice
from pytest_super.functions.source import SourceError

if TYPE_CHECKING:
    from pytest_super.tasks.public_task import MissingFunction

_BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def last_block(answer: str) -> str:
    """The last code block of an answer, or all of it."""
    blocks: list[str] = _BLOCK.findall(answer)
    return blocks[-1] if blocks else answer


def with_answer(data: bytes, function: MissingFunction, answer: str) -> bytes:
    """The file with the function's body from the answer: its last code block, or all of it.

    With the new imports, functions and constants of the answer. Raises SourceError if there is no such
    function in the answer, or it cannot be parsed, and InfrastructureError.
    """
    code = textwrap.dedent(last_block(answer)).strip("\n")
    name, _, region = function.name.partition("@")
    names = name.partition("#")[0].split(".")
    if region:
        lines = "\n".join([f"# region {region}", code, "# endregion"])
        code = f"def {names[-1]}():\n{textwrap.indent(lines, '    ')}"
    elif not re.search(rf"\bdef\s+{re.escape(names[-1])}\b", code):
        raise SourceError(f"{function.file}: the answer has no definition of `{names[-1]}`")
    wrapped = code
    for outer in reversed(names[:-1]):
        wrapped = f"class {outer}:\n{textwrap.indent(wrapped, '    ')}"
    try:
        return splice(function.file, data, encoded(wrapped), [function.name]).data
    except SourceError:
        # The answer can have the class around the method.
        return splice(function.file, data, encoded(code), [function.name]).data


def encoded(code: str) -> bytes:
    # A model can write characters that no file can have.
    return f"{code}\n".encode("utf-8", "replace")
