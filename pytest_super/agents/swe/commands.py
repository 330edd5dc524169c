"""Parses the commands of SWE-agent's interface and their arguments."""

import ast
import re
import shlex
import warnings

from pytest_super.store.step_values import json_object
from pytest_super.store.trajectory import Action

# The arguments of each command, named as in the prompt.
ARGUMENTS = {
    "open": ("path", "line_number"),
    "goto": ("line_number",),
    "scroll_up": (),
    "scroll_down": (),
    "create": ("filename",),
    "search_dir": ("search_term", "dir_path"),
    "search_file": ("search_term", "file"),
    "find_file": ("file_name", "dir_path"),
    "edit": ("start_line", "end_line", "replacement_text"),
    "submit": ("answer",),
}
USAGES = {
    "open": "open <path> [<line_number>]",
    "goto": "goto <line_number>",
    "create": "create <filename>",
    "search_dir": "search_dir <search_term> [<dir_path>]",
    "search_file": "search_file <search_term> [<file>]",
    "find_file": "find_file <file_name> [<dir_path>]",
    "edit": "edit <start_line>:<end_line>",
}
WAITING = ("continue_wait", "interrupt")
END_OF_EDIT = "end_of_edit"

EDIT_FORM = f"""\
An edit of the open file has this form:
edit <start_line>:<end_line>
the new lines
{END_OF_EDIT}"""

# No real command has longer arguments, and shlex is slow.
LONGEST_ARGUMENTS = 4000

_COMMAND = re.compile(rf"({'|'.join(ARGUMENTS)})(?:\s++(.*+))?+", re.DOTALL)
# `open(...)` is Python's own.
# Of the text of a call, which Python parses. A longer one is another cell.
LONGEST_CALL = 10_000
_CALLABLE = "|".join(name for name in ARGUMENTS if name != "open")
_CALL = re.compile(rf"({_CALLABLE})\s*+\((.*)\)\s*+;?+", re.DOTALL)
_ASSIGNMENT = re.compile(r"(?:[-+*/%&|^@]|//|\*\*|<<|>>)?+=(?!=)")
_WAIT = re.compile(r"(continue_wait|interrupt)\s*+(?:\(\s*+\))?+\s*+;?+")
_ACTION_LABEL = re.compile(r"action\s*+:\s*+", re.IGNORECASE)


class CommandError(Exception):
    """The answer cannot be acted on. The text tells the agent why.

    `action` is the refused action, if it is clear, and `thought` the text before it.
    """

    def __init__(self, message: str, action: Action | None = None) -> None:
        super().__init__(message)
        self.action = action
        self.thought = ""


def parse_action(content: str) -> Action:
    """The action: a command, whose name is the type, or else a notebook cell. Raises CommandError."""
    text = content.strip()
    if type := _waiting(text):
        return Action(type=type, content=content)
    command, call = _COMMAND.fullmatch(text), _CALL.fullmatch(text)
    # `goto = 3` is Python, not a command.
    if command and not _ASSIGNMENT.match(command[2] or ""):
        action = Action(type=command[1], content=content)
        _check_alone(action, text)
        return action
    # In published runs models wrote searches as calls, for which bash reported a syntax error.
    if call and (call[1] == "submit" or _literals(text) is not None):
        if call[1] == "edit":
            raise CommandError(
                f"An edit is not written as a call.\n{EDIT_FORM}", Action(type="edit", content=content)
            )
        return Action(type=call[1], content=content)
    return Action(type="execute", content=content)


def is_edit(line: str) -> bool:
    return line.split(maxsplit=1)[:1] == ["edit"]


def without_name(content: str) -> str:
    """The text after a command's name, without the parentheses of a call."""
    text = content.strip()
    if call := _CALL.fullmatch(text):
        return call[2].strip()
    command = _COMMAND.fullmatch(text)
    return (command[2] or "").strip() if command else ""


def arguments_of(content: str) -> list[str]:
    """A command's arguments: words, quoted texts, or the arguments of a call. Raises CommandError."""
    literals = _literals(content.strip())
    if literals is not None:
        return literals
    text = without_name(content)
    if len(text) > LONGEST_ARGUMENTS:
        raise CommandError("The command is too long, so nothing was done.")
    try:
        return shlex.split(text)
    except ValueError:
        raise CommandError(
            "A quote is not closed, so nothing was done: put an argument that contains spaces, or quotes of "
            "one kind, between quotes of the other kind."
        ) from None


def parse_edit(content: str) -> tuple[str, list[str]]:
    """The line numbers after `edit` in the first line, and the lines of the replacement."""
    first, *lines = content.strip().split("\n")
    return without_name(first), lines[:-1]


def _waiting(text: str) -> str | None:
    """`continue_wait` or `interrupt`, written bare, as a call, as JSON, or after `action:`; else None."""
    # In published runs some of these forms were run as cells and did nothing.
    if bare := _WAIT.fullmatch(text):
        return bare[1]
    label = _ACTION_LABEL.match(text)
    value = text[label.end() :] if label else text
    if label and (word := _WAIT.fullmatch(value)):
        return word[1]
    if (fields := json_object(value)) is None:
        return None
    type = fields.get("type")
    if type in WAITING and not fields.get("content"):
        return str(type)
    if label:
        raise CommandError("An action is not JSON here, so nothing was done: write the command itself.")
    return None


def _check_alone(action: Action, text: str) -> None:
    """Raises CommandError if more text follows the command, or if an edit does not end."""
    _, *lines = text.split("\n")
    if action.type == "edit":
        # In published runs such an edit was run as a cell, where `edit` opens IPython's editor.
        if END_OF_EDIT not in (line.strip() for line in lines):
            raise CommandError(f"The edit does not end, so nothing was done.\n{EDIT_FORM}", action)
        lines = lines[[line.strip() for line in lines].index(END_OF_EDIT) + 1 :]
    # The JSON of a submission can have several lines.
    if action.type != "submit" and any(line.strip() for line in lines):
        raise CommandError(
            f"More text follows the command, so nothing was done: put only `{action.type}` between the "
            "fences, and send the rest when you have its result.",
            action,
        )


def _literals(text: str) -> list[str] | None:
    """The arguments, in order, of a call whose arguments are all constants; None for any other text."""
    if len(text) > LONGEST_CALL or not _CALL.fullmatch(text):
        return None
    try:
        with warnings.catch_warnings():
            # Under `-W error`, a warning about an invalid escape sequence would be raised as an error.
            warnings.simplefilter("ignore")
            call = ast.parse(text.rstrip("; \t\n"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    names = ARGUMENTS[call.func.id][len(call.args) :][: len(named)]
    if set(named) != set(names):
        return None
    values = [*call.args, *(named[name] for name in names)]
    constants = [str(value.value) for value in values if isinstance(value, ast.Constant)]
    return constants if len(constants) == len(values) else None
