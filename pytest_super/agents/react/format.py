"""The answer format of the ReAct agents: a thought, and an action with its content between tags.

    Thought: I list the files.
    Action: execute
    <content>
    !ls
    </content>

The parser is lenient where an answer can mean only one thing, and refuses an answer whose literal reading
could differ from its intention. It takes time linear in the length of the answer: the patterns use possessive
quantifiers, so they never backtrack into a run of characters.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_super.agents.asking import CUT, CUT_OFF, Response
from pytest_super.store.trajectory import Action

ACTION_TYPES = ("execute", "edit", "submit", "continue_wait", "interrupt")
WITHOUT_CONTENT = ("continue_wait", "interrupt")

OPENING, CLOSING = "<content>", "</content>"
BEFORE, AFTER = "<<<BEFORE_EDIT>>>", "<<<AFTER_EDIT>>>"

FORM = f"""\
Answer with one thought and one action in this form:
Thought: ...
Action: execute
{OPENING}
...
{CLOSING}"""

EDIT_FORM = f"""\
The content of an edit has this form:
{{filename}}
{BEFORE}
lines to replace
{AFTER}
the new lines"""

_MARKUP = r"[ \t>*_`#-]*+"
_OPENING_LINE = re.compile(rf"^[ \t]*+{OPENING}", re.MULTILINE)
_CLOSING_LINE = re.compile(rf"{CLOSING}(?=[ \t\r]*+(?:\n|\Z|(?:Thought|Action|Observation)\b))")
_TAG = re.compile(rf"{OPENING}|{_CLOSING_LINE.pattern}")
_LABEL = re.compile(rf"(?:(?P<lead>^{_MARKUP})|\b)Action[*_`]*+[ \t]*+:", re.MULTILINE | re.IGNORECASE)
_TYPE = re.compile(r"[*_`'\"\s]*+([A-Za-z]++(?:[ _-][A-Za-z]++)?+)[*_`'\".]*+[ \t\r]*+(?=\n|<content>|\Z)")
_SAID = r"Thought[*_`]*+[ \t]*+:[*_]*+"
_THOUGHT = re.compile(rf"^{_MARKUP}{_SAID}(?:\s*+^{_SAID})*+", re.MULTILINE | re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*+```([\w+-]*+)[ \t\r]*+$", re.MULTILINE)
_ALONE = "In code, write a tag that begins or ends a line in two parts."
_SHELLS = ("bash", "console", "sh", "shell", "zsh")


class FormatError(Exception):
    """The answer cannot be acted on. The text tells the agent why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A requested edit. Its texts are empty or whole lines, each with its newline."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Header:
    """The position of an `Action:` label with a known type."""

    type: str
    start: int
    end: int


def parse_response(text: str, finish_reason: str = "stop", types: Sequence[str] = ACTION_TYPES) -> Response:
    """The first complete action of an answer, with the thought before it.

    The rest is ignored: a model that continues after its action has made up the observation. Raises
    FormatError for a cut answer, and for one without a complete action of one of the `types`.
    """
    if finish_reason in CUT:
        raise FormatError(f"{CUT_OFF}\n{FORM}")
    # Only if all lines end so: a single CRLF can be part of the content.
    if text.count("\r\n") == text.count("\n"):
        text = text.replace("\r\n", "\n")
    headers = list(_headers(text, types))
    limits = [header.start for header in headers[1:]] + [len(text)]
    # Not strict: without headers there is still the end of the text.
    for header, limit in zip(headers, limits, strict=False):
        content = _content(text, header, limit)
        if content is not None:
            action = Action(type=header.type, content=content)
            return Response(thought=_thought(text[: header.start]), action=action)
    raise FormatError(f"{_why_no_action(text, headers, types)}\n{FORM}")


def render_response(thought: str, action: Action) -> str:
    """The answer that `parse_response` reads as this thought and action."""
    return f"Thought: {thought}\nAction: {action.type}\n{OPENING}\n{action.content}\n{CLOSING}"


def parse_edit(content: str) -> Change:
    """Parse an edit's content. Lines between the file name and the first mark belong to both texts.

    The last line can have a line end: that is not a blank line of the new text.
    Raises FormatError, also for a missing second part: it would delete the lines of the first.
    """
    path, _, rest = content.removesuffix("\n").lstrip("\n").partition("\n")
    lines = rest.split("\n")
    marks = [index for index, line in enumerate(lines) if line.strip() in (BEFORE, AFTER)]
    if len(marks) > 2:
        raise FormatError(
            "An edit replaces one block of one file, so nothing was done: send several edits one by one. "
            f"Use a cell to change lines that are such marks themselves.\n{EDIT_FORM}"
        )
    if [lines[index].strip() for index in marks] != [BEFORE, AFTER] or not path.strip():
        raise FormatError(f"The edit lacks a part, so nothing was done.\n{EDIT_FORM}")
    first, second = marks
    context = _joined(lines[:first])
    return Change(
        path=path.strip(),
        before=context + _joined(lines[first + 1 : second]),
        after=context + _joined(lines[second + 1 :]),
    )


def _headers(text: str, types: Sequence[str]) -> Iterator[_Header]:
    for label in _LABEL.finditer(text):
        found = _TYPE.match(text, label.end())
        type = _known(found[1], types) if found else None
        # In the middle of a line, a label without content can be part of the thought.
        if found and type and (label["lead"] is not None or type not in WITHOUT_CONTENT):
            yield _Header(type=type, start=label.start(), end=found.end())


def _known(word: str, types: Sequence[str]) -> str | None:
    type = re.sub("[ -]", "_", word.lower())
    # The published code did not know `continue`, which can only mean to wait.
    type = "continue_wait" if type == "continue" else type
    return type if type in types else None


def _thought(text: str) -> str:
    """The thought, including text before its label, which is reasoning too."""
    label = _THOUGHT.search(text)
    if label is None:
        return text.strip()
    return f"{text[: label.start()].strip()}\n{text[label.end() :].strip()}".strip()


def _content(text: str, header: _Header, limit: int) -> str | None:
    """The action's content, or None if it is missing. Raises FormatError if its end is not clear."""
    if header.type in WITHOUT_CONTENT:
        return ""
    if text.startswith(OPENING, header.end):
        return _checked(_within_tags(text, header.end + len(OPENING)), header.type)
    if opening := _OPENING_LINE.search(text, header.end, limit):
        return _checked(_within_tags(text, opening.end()), header.type)
    if text[header.end : limit].lstrip().startswith("```"):
        return _checked(_sole_fence(text[header.end : limit]), header.type)
    return None


def _within_tags(text: str, start: int) -> str:
    """The content from `start` up to the first closing tag at the end of a line. Raises FormatError.

    The model has made up the rest, unless that closes a tag that it does not open.
    """
    closing = _CLOSING_LINE.search(text, start)
    # A tag that stays open in the content can be that of the next action, or a stop text has cut the answer.
    if closing is None or _OPENING_LINE.search(text, start, closing.start()):
        raise FormatError(f"The content is not closed by {CLOSING}, so nothing was done. {_ALONE}\n{FORM}")
    depth = 1
    for tag in _TAG.finditer(text, closing.end()):
        depth += 1 if tag[0] == OPENING else -1
        if not depth:
            why = f"A second {CLOSING} follows, so it is not clear where the content ends"
            raise FormatError(f"{why}, and nothing was done. {_ALONE}\n{FORM}")
    # Only the line ends next to the tags: blank lines can be intended.
    content = re.sub(r"\A[ \t]*+(?:\r?\n)?", "", text[start : closing.start()])
    head, _, last = content.rpartition("\n")
    return content if last.strip(" \t\r") else head


def _sole_fence(text: str) -> str:
    """The fenced block at the beginning of the text. Raises FormatError if its end is not clear."""
    fences = list(_FENCE.finditer(text))
    if len(fences) != 2 or fences[1][1]:
        raise FormatError(f"It is not clear where the content ends, so nothing was done.\n{FORM}")
    return text[: fences[1].end()]


def _checked(content: str, type: str) -> str:
    """The content without a code fence around it. Raises FormatError if it is empty, or is a shell script."""
    language, content = _without_fence(content)
    if not content.strip():
        raise FormatError(f"The content of {type} is empty, so nothing was done.\n{FORM}")
    if type == "execute" and language in _SHELLS and not content.lstrip().startswith(("!", "%")):
        raise FormatError("Nothing was done: a shell command in a cell starts with an exclamation mark.")
    return content


def _without_fence(content: str) -> tuple[str, str]:
    fences = list(_FENCE.finditer(content))
    if len(fences) < 2 or fences[-1][1]:
        return "", content
    first, last = fences[0], fences[-1]
    if content[: first.start()].strip() or content[last.end() :].strip():
        return "", content
    return first[1].lower(), content[first.end() + 1 : max(first.end() + 1, last.start() - 1)]


def _why_no_action(text: str, headers: Sequence[_Header], types: Sequence[str]) -> str:
    if headers:
        return f"The content of {headers[0].type} is missing: put it between {OPENING} and {CLOSING}."
    label = next((label for label in _LABEL.finditer(text) if label["lead"] is not None), None)
    if label is None:
        return "The answer contains no action."
    said = text[label.end() : label.end() + 80].strip().partition("\n")[0]
    if not said or said.startswith(OPENING):
        return f"The action is not named: use one of {', '.join(types)}."
    return f"`{said}` is not an action: use one of {', '.join(types)}."


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
