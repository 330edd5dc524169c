"""SWE-agent's tools (Yang et al. 2024): an editor that shows a window of one open file, and searches.

The tools work on the bytes of the sandbox's files without the kernel, so they take no compute time. Their
output has the form of SUPER's published runs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_super.agents.swe.commands import ARGUMENTS, USAGES, CommandError, arguments_of, parse_edit
from pytest_super.agents.swe.window import (
    OVERLAP,
    WINDOW,
    MissingFile,
    ToolRefused,
    exists,
    find_file,
    lines_of,
    printable,
    read,
    search_dir,
    search_lines,
    window,
    within,
    write,
)
from pytest_super.functions.bounded import compile_error
from pytest_super.functions.source import SourceError
from pytest_super.kernel.files import SandboxFiles
from pytest_super.store.trajectory import Action
from pytest_super.trial.trial import Tool

RULE = "-" * 49
UPDATED = (
    "File updated. Please review the changes and make sure they are correct "
    "(correct indentation, no duplicate lines, etc). Edit the file again if necessary."
)
NOT_APPLIED = """\
Your changes have NOT been applied. Please fix your edit command and try again.
You either need to 1) Specify the correct start/end line arguments or 2) Correct your edit code.
DO NOT re-run the same failed edit command. Running it again will lead to the same error."""

# Larger files are not checked: nobody writes them by hand.
CHECKED_BYTES = 2**20


@dataclass(frozen=True, kw_only=True)
class LineEdit:
    """Replaces the lines `first` to `last`, counted from 1, by `text`, lines without newlines."""

    first: int
    last: int
    text: Sequence[str]


def make_edit(span: str, text: Sequence[str], total: int) -> LineEdit:
    """The edit of `edit <span>` in a file with so many lines; an empty one has one. Raises ToolRefused."""
    numbers = re.fullmatch(r"(\d{1,9})\s*:\s*(\d{1,9})", span)
    if numbers is None:
        raise misused("edit", "it edits the open file, and takes the numbers of two lines")
    first, last, total = int(numbers[1]), int(numbers[2]), max(total, 1)
    # For lines that the file does not have, the published tool put the text in some other place.
    if not 1 <= first <= total:
        raise misused("edit", f"<start_line> must be from 1 to {total}, the file's last line")
    if last < first:
        raise misused("edit", "<end_line> must not be less than <start_line>")
    return LineEdit(first=first, last=min(last, total), text=text)


def edited(path: str, lines: Sequence[bytes], edit: LineEdit) -> list[bytes]:
    """The file's lines after the edit. Raises ToolRefused if it adds an error to a Python file."""
    result = replaced(lines, edit)
    if path.endswith(".py"):
        last = edit.first + len(edit.text) - 1
        error = introduced_error(b"".join(lines), b"".join(result), edit.first, last)
        if error is not None:
            raise ToolRefused(refusal(error, path, lines, result, edit))
    return result


def replaced(lines: Sequence[bytes], edit: LineEdit) -> list[bytes]:
    """The lines after the edit; new lines have the line ends of the lines that they replace."""
    before, old, after = lines[: edit.first - 1], lines[edit.first - 1 : edit.last], lines[edit.last :]
    end = line_end(old) or line_end(before[-1:]) or b"\n"
    new = [line.encode("utf-8", "replace") + end for line in edit.text]
    if new and old and not line_end(old[-1:]):
        new[-1] = new[-1].removesuffix(end)
    return [*before, *new, *after]


def line_end(lines: Sequence[bytes]) -> bytes:
    """The line end of the first line; b"" if it lacks one, or without lines."""
    if not lines or not lines[0].endswith(b"\n"):
        return b""
    return b"\r\n" if lines[0].endswith(b"\r\n") else b"\n"


def refusal(
    error: SyntaxError, path: str, lines: Sequence[bytes], result: Sequence[bytes], edit: LineEdit
) -> str:
    """The reason of the refusal, the code as it would be after the edit, and the code as it is."""
    # The sandbox's Python can be newer and accept more.
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    above, old, new = edit.first - 1, edit.last - edit.first + 1, len(edit.text)
    return f"""\
Your proposed edit has introduced new syntax error(s). \
Please read this error message carefully and then retry editing the file.

ERRORS:
- E999 {type(error).__name__}: {error.msg} (line {error.lineno}, as Python {version} reads it)

This is how your edit would have looked if applied
{RULE}
{window(path, result, above + new // 2, new + 10)}
{RULE}

This is the original code before your edit
{RULE}
{window(path, lines, above + (old + 1) // 2, old + 10)}
{RULE}
{NOT_APPLIED}"""


def introduced_error(before: bytes, after: bytes, first: int, last: int) -> SyntaxError | None:
    """The error that an edit introduces; its new lines are `first` to `last` of `after`.

    Python reports only the first error of a file. If the file had an error before, an error outside the new
    lines can be an older one that was hidden, so it is ignored; otherwise such a file could never be edited.
    """
    error = syntax_error(after)
    if error is None:
        return None
    old = syntax_error(before)
    if old is None:
        return error
    is_old = (old.msg, old.text) == (error.msg, error.text)
    return error if not is_old and first <= (error.lineno or 0) <= last else None


def syntax_error(source: bytes) -> SyntaxError | None:
    """The error of this Python's compiler, None also for a source that cannot be checked within limits."""
    try:
        return compile_error("<edited>", source) if len(source) <= CHECKED_BYTES else None
    except SourceError:
        return None


# Lines shown above the requested line.
ABOVE_GOAL = WINDOW // 6


@dataclass(kw_only=True)
class Editor:
    """The open file and the lines shown. A failed command changes neither, but `create` opens what exists."""

    path: str | None = None
    center: int = WINDOW // 2

    def tool(self, action: Action) -> Tool:
        """The function that runs the command on a sandbox's files."""

        def work(files: SandboxFiles) -> tuple[str, str]:
            try:
                return self._do(files, action), "ok"
            except (ToolRefused, CommandError) as refused:
                return str(refused), "error"
            except OSError as error:
                return f"Error: {error.strerror or error}", "error"

        return work

    def _do(self, files: SandboxFiles, action: Action) -> str:
        if action.type == "edit":
            return self._edit(files, *parse_edit(action.content))
        if action.type in ("scroll_up", "scroll_down"):
            return self._scroll(files, 1 if action.type == "scroll_down" else -1)
        arguments = checked(action.type, arguments_of(action.content))
        commands: dict[str, Callable[..., str]] = {
            "open": self._open,
            "goto": self._goto,
            "create": self._create,
            "search_file": self._search_file,
            "search_dir": search_dir,
            "find_file": find_file,
        }
        return commands[action.type](files, *arguments)

    def _open(self, files: SandboxFiles, name: str, line: str = "") -> str:
        lines = lines_of(read(files, name))
        goal = number(line, "open", "line_number") if line else None
        center = WINDOW // 2 if goal is None else goal + WINDOW // 2 - ABOVE_GOAL
        shown = self._show(files.resolve(name), lines, center)
        if goal is None or 1 <= goal <= len(lines):
            return shown
        return (
            f"Warning: line {goal} is not one of the file's {len(lines)}, this is the nearest part\n{shown}"
        )

    def _goto(self, files: SandboxFiles, line: str) -> str:
        path, lines = self._opened(files)
        goal = number(line, "goto", "line_number")
        if goal > len(lines):
            raise ToolRefused(f"Error: <line> must be less than or equal to {len(lines)}")
        return self._show(path, lines, goal + WINDOW // 2 - ABOVE_GOAL)

    def _scroll(self, files: SandboxFiles, direction: int) -> str:
        path, lines = self._opened(files)
        center = within(self.center, len(lines)) + direction * (WINDOW - OVERLAP)
        return self._show(path, lines, center)

    def _create(self, files: SandboxFiles, name: str) -> str:
        if exists(files, name):
            raise ToolRefused(f"Error: File '{printable(name)}' already exists.\n{self._open(files, name)}")
        # One empty line, so that `edit 1:1` can replace it.
        write(files, name, b"\n")
        self._open(files, name)
        return f"File '{printable(name)}' created."

    def _search_file(self, files: SandboxFiles, term: str, name: str = "") -> str:
        if not name:
            path, lines = self._opened(files)
            return search_lines(term, path, lines)
        try:
            lines = lines_of(read(files, name))
        except MissingFile:
            missing = f"File name {printable(name)} not found. Please provide a valid file name."
            raise misused("search_file", missing) from None
        return search_lines(term, files.resolve(name), lines)

    def _edit(self, files: SandboxFiles, span: str, text: Sequence[str]) -> str:
        path, lines = self._opened(files)
        edit = make_edit(span, text, len(lines))
        result = edited(path, lines, edit)
        write(files, path, b"".join(result))
        return f"{self._show(path, result, edit.first - 1)}\n{UPDATED}"

    def _opened(self, files: SandboxFiles) -> tuple[str, list[bytes]]:
        if self.path is None:
            raise ToolRefused("No file open. Use the open command first.")
        return self.path, lines_of(read(files, self.path))

    def _show(self, path: str, lines: Sequence[bytes], center: int) -> str:
        self.path, self.center = path, within(center, len(lines))
        return window(path, lines, self.center)


def misused(command: str, why: str) -> ToolRefused:
    return ToolRefused(f"Usage: {USAGES[command]}\nError: {why}")


def checked(name: str, arguments: Sequence[str]) -> Sequence[str]:
    """The arguments. Raises ToolRefused if the command does not take this many."""
    # Each command needs the first one of its arguments.
    if not 1 <= len(arguments) <= len(ARGUMENTS[name]) or not all(arguments):
        raise misused(name, f"got {len(arguments)} arguments; put one with spaces in quotes")
    return arguments


def number(text: str, command: str, name: str) -> int:
    # Python refuses to read numbers of thousands of digits.
    if not re.fullmatch(r"\d{1,9}", text):
        raise misused(command, f"<{name}> must be a number")
    return int(text)
