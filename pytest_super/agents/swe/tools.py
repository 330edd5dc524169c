"""SWE-agent's tools (Yang et al. 2024): an editor that shows a window of one open file, and searches.

The tools work on the bytes of the sandbox's files without the kernel, so they take no compute time. Their
output has the form of SUPER's published runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_super.agents.swe.commands import ARGUMENTS, CommandError, arguments_of, parse_edit, usage
from pytest_super.agents.swe.edit import UPDATED, edited, make_edit
from pytest_super.agents.swe.files import MissingFile, ToolRefused, exists, printable, read, write
from pytest_super.agents.swe.search import find_file, search_dir, search_lines
from pytest_super.agents.swe.window import OVERLAP, WINDOW, lines_of, window, within
from pytest_super.store.trajectory import Action

if TYPE_CHECKING:
    from pytest_super.kernel.files import SandboxFiles
    from pytest_super.trial.trial import Tool

# Lines shown above the requested line.
ABOVE_GOAL = WINDOW // 6


@dataclass(kw_only=True)
class Editor:
    """The open file and the lines of it that are shown. A failed command changes neither.

    The exception is a `create` of an existing file, which opens it, as in the published runs.
    """

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
        match action.type:
            case "open":
                return self._open(files, *arguments)
            case "goto":
                return self._goto(files, *arguments)
            case "create":
                return self._create(files, *arguments)
            case "search_file":
                return self._search_file(files, *arguments)
            case "search_dir":
                return search_dir(files, *arguments)
            case "find_file":
                return find_file(files, *arguments)
        raise ValueError(f"not a command: {action.type}")

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
            raise ToolRefused(f"{usage('search_file')}\nError: {missing}") from None
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


def checked(name: str, arguments: Sequence[str]) -> Sequence[str]:
    """The arguments. Raises ToolRefused if the command does not take this many."""
    # Each command needs the first one of its arguments.
    if not 1 <= len(arguments) <= len(ARGUMENTS[name]) or not all(arguments):
        raise ToolRefused(
            f"{usage(name)}\nError: got {len(arguments)} arguments; put one with spaces in quotes"
        )
    return arguments


def number(text: str, command: str, name: str) -> int:
    # Python refuses to read numbers of thousands of digits.
    if not re.fullmatch(r"\d{1,9}", text):
        raise ToolRefused(f"{usage(command)}\nError: <{name}> must be a number")
    return int(text)
