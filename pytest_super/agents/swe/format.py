"""The answer format of SWE-agent: a discussion, and one command in a code fence.

    DISCUSSION
    I list the files.
    ```
    !ls
    ```

The parser is lenient where an answer can mean only one thing, and refuses an answer whose literal reading
could differ from its intention. It takes time linear in the length of the answer.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_super.agents.asking import CUT, CUT_OFF, Response
from pytest_super.agents.swe.commands import (
    ARGUMENTS,
    END_OF_EDIT,
    WAITING,
    CommandError,
    is_edit,
    parse_action,
    without_name,
)

FORM = """\
Answer with one discussion and one command in this form:
DISCUSSION
...
```
the command
```"""

_FENCE = re.compile(r" {0,3}(`{3,}+)([^`]*+)")
_ONE_LINE = re.compile(r" {0,3}```([^`]++)```\s*+")
_LANGUAGE = re.compile(r"[A-Za-z][\w+#.-]*+")
_HEADING = re.compile(r"[\s#*]*+DISCUSSION\b[*:]*+\s*+")
_NEXT_ANSWER = re.compile(r"\s*+(?:DISCUSSION|edit \d++:\d++)\s*+")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Block:
    """A fenced block. `start` is the number of its first line, `end` that of the line after it."""

    content: str
    start: int
    end: int


def parse_answer(text: str, finish_reason: str = "stop") -> Response:
    """The one command of an answer, with the discussion before it; text after the command is ignored.

    The action's type is the command's name or `execute`; its content is the command as written. Raises
    CommandError for a cut answer, and for one that does not contain exactly one command.
    """
    if finish_reason in CUT:
        raise CommandError(f"{CUT_OFF}\n{FORM}")
    lines = text.replace("\r\n", "\n").split("\n")
    block = _sole_block(lines)
    thought = "\n".join(lines[: block.start])
    heading = _HEADING.match(thought)
    thought = thought[heading.end() if heading else 0 :].strip()
    try:
        return Response(thought=thought, action=parse_action(block.content))
    except CommandError as error:
        error.thought = thought
        raise


def render_answer(thought: str, content: str) -> str:
    """The answer that `parse_answer` reads so. Its fence is longer than any fence in the command."""
    inner = [found for line in content.split("\n") if (found := _FENCE.fullmatch(line))]
    fence = "`" * max([3, *(len(found[1]) + 1 for found in inner)])
    return f"DISCUSSION\n{thought}\n{fence}\n{content}\n{fence}"


def submission_text(content: str) -> str:
    """What a `submit` command submits, which should be JSON."""
    text = without_name(content)
    # A shell would remove the quotes too.
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text


def _sole_block(lines: Sequence[str]) -> _Block:
    """The only block. Raises CommandError if there is none or more than one, or if it is empty."""
    blocks = _blocks(lines)
    first = next(blocks, None)
    if first is None:
        raise CommandError(f"The answer contains no command, so nothing was done.\n{FORM}")
    if next(blocks, None) is not None:
        raise CommandError(
            "The answer contains more than one fenced block, so nothing was done: send one command and wait "
            f"for its result. Put a command that contains fences itself between longer ones.\n{FORM}"
        )
    if not first.content:
        raise CommandError(f"The command is empty, so nothing was done.\n{FORM}")
    return first


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    at = 0
    while at < len(lines):
        opening, whole = _FENCE.fullmatch(lines[at]), _ONE_LINE.fullmatch(lines[at])
        start, at = at, at + 1
        if whole:
            yield _Block(content=whole[1].strip(), start=start, end=at)
        elif opening:
            block = _block(lines, start, opening)
            at = block.end
            yield block


def _block(lines: Sequence[str], start: int, opening: re.Match[str]) -> _Block:
    """The block that the fence opens. Raises CommandError if it does not end."""
    label = opening[2].strip()
    # A label that cannot be a language's name is the beginning of the command.
    has_command = bool(label) and not _LANGUAGE.fullmatch(label)
    head = start if has_command else _next_written(lines, start + 1)
    text_start = head if is_edit(label if has_command else lines[head]) else None
    end = _end(lines, start, len(opening[1]), text_start)
    if end is None:
        raise CommandError(f"The command is not closed by a fence, so nothing was done.\n{FORM}")
    written = [label if has_command else "", *lines[start + 1 : end]]
    content = "\n".join(written[_next_written(written, 0) :]).rstrip()
    if not content and (label in ARGUMENTS or label in WAITING):
        content = label
    return _Block(content=content, start=start, end=end + 1)


def _end(lines: Sequence[str], start: int, size: int, edit: int | None) -> int | None:
    """The number of the closing fence; labelled ones nest. `edit` is the first line of an edit."""
    depth = 0
    if edit is not None and (mark := _mark(lines, edit + 1)) is not None:
        start = mark
    for number in range(start + 1, len(lines)):
        fence = _FENCE.fullmatch(lines[number])
        if fence is None or len(fence[1]) < size:
            continue
        if fence[2].strip():
            depth += 1
        elif depth:
            depth -= 1
        else:
            return number
    return None


def _mark(lines: Sequence[str], start: int) -> int | None:
    """The number of the line that ends the edit's text. Raises CommandError if another answer starts."""
    for number in range(start, len(lines)):
        if lines[number].strip() == END_OF_EDIT:
            return number
        # In a published run the first line of a second edit was put into the file.
        if _NEXT_ANSWER.fullmatch(lines[number]):
            raise CommandError(
                f"Another command follows, but no {END_OF_EDIT} ends the edit, so nothing was done.\n{FORM}"
            )
    return None


def _next_written(lines: Sequence[str], start: int) -> int:
    """The number of the first line from `start` on that is not blank, or else that of the last line."""
    return next((number for number in range(start, len(lines)) if lines[number].strip()), len(lines) - 1)
