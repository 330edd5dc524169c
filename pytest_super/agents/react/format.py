"""What the ReAct agents answer: a thought, and an action of a type with its content between tags.

    Thought: I look what is there.
    Action: execute
    <content>
    !ls
    </content>

Read leniently where an answer can mean one thing only, and refused where a mistake would do something else
than was meant. All of it is linear in the length of the answer: no run of characters is walked through again
from its middle.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_super.store.trajectory import Action

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ACTION_TYPES = ("execute", "edit", "submit", "continue_wait", "interrupt")
WITHOUT_CONTENT = ("continue_wait", "interrupt")

OPENING, CLOSING = "<content>", "</content>"
BEFORE, AFTER = "<<<BEFORE_EDIT>>>", "<<<AFTER_EDIT>>>"

# Answers that the provider ended: what is there of them may be the first half of anything.
CUT = ("length", "content_filter")

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
lines in their place"""

_MARKUP = r"[ \t>*_`#-]*+"
_LABEL = re.compile(rf"(?:(?P<lead>^{_MARKUP})|\b)Action[*_`]*+[ \t]*+:", re.MULTILINE | re.IGNORECASE)
_TYPE = re.compile(r"[*_`'\"\s]*+([A-Za-z]++(?:[ _-][A-Za-z]++)?+)[*_`'\".]*+[ \t\r]*+(?=\n|<content>|\Z)")
_SAID = r"Thought[*_`]*+[ \t]*+:[*_]*+"
_THOUGHT = re.compile(rf"^{_MARKUP}{_SAID}(?:\s*+^{_SAID})*+", re.MULTILINE | re.IGNORECASE)
_OPENING = re.compile(rf"^[ \t]*+{OPENING}", re.MULTILINE)
_CLOSING = re.compile(rf"{CLOSING}[ \t\r]*+(?:\Z|Thought\b|Action\b|Observation\b)")
_FENCE = re.compile(r"^[ \t]*+```([\w+-]*+)[ \t\r]*+$", re.MULTILINE)
_SHELLS = ("bash", "console", "sh", "shell", "zsh")


class FormatError(Exception):
    """The answer is not to be acted on; the text says why, to the agent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """An answer of the model, read."""

    thought: str
    action: Action


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """An edit that is asked for. Its texts are whole lines, each with its newline, or empty."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Header:
    """Where an action of a known type is announced."""

    type: str
    start: int
    end: int


def parse_response(text: str, finish_reason: str = "stop", types: Sequence[str] = ACTION_TYPES) -> Response:
    """The first complete action of an answer, with the thought before it.

    A model that writes on has made up the observation itself, so the rest of its answer was decided without
    knowing what the first action did. Raises FormatError for an answer that was cut, and for one without a
    complete action of one of the `types`.
    """
    if finish_reason in CUT:
        raise FormatError(f"The answer was cut off at its end, so nothing was done: be brief.\n{FORM}")
    if text.count("\r\n") == text.count("\n"):
        text = text.replace("\r\n", "\n")
    headers = list(_headers(text, types))
    limits = [header.start for header in headers[1:]] + [len(text)]
    for header, limit in zip(headers, limits, strict=False):
        content = _content(text, header, limit)
        if content is not None:
            action = Action(type=header.type, content=content)
            return Response(thought=_thought(text[: header.start]), action=action)
    raise FormatError(f"{_why_no_action(text, headers, types)}\n{FORM}")


def render_response(thought: str, action: Action) -> str:
    """The answer that reads as this thought and action."""
    return f"Thought: {thought}\nAction: {action.type}\n{OPENING}\n{action.content}\n{CLOSING}"


def parse_edit(content: str) -> Change:
    """What an edit's content asks for; lines between the name and the first mark stand before both texts.

    Raises FormatError: an edit whose second part is missing would delete the first.
    """
    path, _, rest = content.lstrip("\n").partition("\n")
    lines = rest.split("\n")
    marks = [index for index, line in enumerate(lines) if line.strip() in (BEFORE, AFTER)]
    if len(marks) > 2:
        raise FormatError(
            "An edit replaces one piece of one file, so nothing was done: send several edits one by one, and "
            f"change lines that are such marks themselves by a cell.\n{EDIT_FORM}"
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


def parse_submission(content: str) -> Any:
    """The JSON value that a submission's content is. Raises FormatError."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else error
    raise FormatError(
        f"The submission is not JSON, so it was not handed in: {why}.\n"
        "JSON has keys and texts in double quotes; null stands for no answer."
    )


def _headers(text: str, types: Sequence[str]) -> Iterator[_Header]:
    for label in _LABEL.finditer(text):
        found = _TYPE.match(text, label.end())
        type = _known(found[1], types) if found else None
        # In the middle of a line it may be words of the thought, unless content follows.
        if found and type and (label["lead"] is not None or type not in WITHOUT_CONTENT):
            yield _Header(type=type, start=label.start(), end=found.end())


def _known(word: str, types: Sequence[str]) -> str | None:
    type = re.sub("[ -]", "_", word.lower())
    type = "continue_wait" if type == "continue" else type
    return type if type in types else None


def _thought(text: str) -> str:
    """With what the model wrote before the label, which is its reasoning too."""
    label = _THOUGHT.search(text)
    if label is None:
        return text.strip()
    return f"{text[: label.start()].strip()}\n{text[label.end() :].strip()}".strip()


def _content(text: str, header: _Header, limit: int) -> str | None:
    """What the action is to do; None where that is not there. Raises FormatError where it is not clear."""
    if header.type in WITHOUT_CONTENT:
        return ""
    if text.startswith(OPENING, header.end):
        return _checked(_within_tags(text, header.end + len(OPENING), limit), header.type)
    if opening := _OPENING.search(text, header.end, limit):
        return _checked(_within_tags(text, opening.end(), limit), header.type)
    if text[header.end : limit].lstrip().startswith("```"):
        return _checked(_sole_fence(text[header.end : limit]), header.type)
    return None


def _within_tags(text: str, start: int, limit: int) -> str:
    """Up to the first closing tag that ends its line and was not opened there; others are the content's.

    Raises FormatError where none is, or where it closes what another action, at `limit`, has opened.
    """
    end = start
    for line in text[start:].split("\n"):
        closing = _CLOSING.search(line)
        if closing and OPENING not in line[: closing.start()]:
            end += closing.start()
            break
        end += len(line) + 1
    if end > len(text) or _OPENING.search(text, limit, end):
        raise FormatError(f"The content is not closed by {CLOSING}, so nothing was done.\n{FORM}")
    return _without_tag_lines(text[start:end])


def _without_tag_lines(content: str) -> str:
    """Without the ends of the lines that the tags stand on, and no other: a blank line may be meant."""
    content = re.sub(r"\A[ \t]*+(?:\r?\n)?", "", content)
    head, _, last = content.rpartition("\n")
    return content if last.strip(" \t\r") else head


def _sole_fence(text: str) -> str:
    """The code fence with which the text begins, if no other line could be its end."""
    fences = list(_FENCE.finditer(text))
    if len(fences) != 2 or fences[1][1]:
        raise FormatError(f"Where the content ends is not clear, so nothing was done.\n{FORM}")
    return text[: fences[1].end()]


def _checked(content: str, type: str) -> str:
    """Without a code fence around it, which no cell, edit or submission begins with. Raises FormatError."""
    language, content = _without_fence(content)
    if not content.strip():
        raise FormatError(f"The content of {type} is empty, so nothing was done.\n{FORM}")
    if type == "execute" and language in _SHELLS and not content.lstrip().startswith(("!", "%")):
        raise FormatError("Nothing was done: a shell command in a cell begins with an exclamation mark.")
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
        return f"The content of {headers[0].type} is missing: it stands between {OPENING} and {CLOSING}."
    label = next((label for label in _LABEL.finditer(text) if label["lead"] is not None), None)
    if label is None:
        return "The answer holds no action."
    said = text[label.end() : label.end() + 80].strip().partition("\n")[0]
    if not said or said.startswith(OPENING):
        return f"The action is not named: known are {', '.join(types)}."
    return f"`{said}` is no action: known are {', '.join(types)}."


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
