"""SWE-agent's searches: for text in a file, for text in the files below a folder, for files by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_super.agents.swe.files import ToolRefused, printable, refused
from pytest_super.agents.swe.window import shown_lines

if TYPE_CHECKING:
    from pytest_super.kernel.files import FileSearch, SandboxFiles

# Files or lines that a search lists, as in the published runs.
LISTED = 100
# Short, because the time of a tool is not charged to the trial.
SEARCH_SECONDS = 10.0


def search_lines(term: str, path: str, lines: Sequence[bytes]) -> str:
    """The lines of a file that contain the term, literally."""
    needle, path = term.encode("utf-8", "surrogateescape"), printable(path)
    numbers = [number for number, line in enumerate(lines, 1) if needle in line]
    if not numbers:
        return f'No matches found for "{term}" in {path}'
    # The published wording, although the number is exact.
    if len(numbers) > LISTED:
        return f'More than {len(numbers)} lines matched for "{term}" in {path}. Please narrow your search.'
    texts = shown_lines([lines[number - 1] for number in numbers])
    found = [f"Line {number}:{text}" for number, text in zip(numbers, texts, strict=True)]
    return matches(f'matches for "{term}" in {path}', len(numbers), found)


def search_dir(files: SandboxFiles, term: str, folder: str = ".") -> str:
    """The number of matching lines of each file below the folder; hidden and binary files are skipped."""
    result = search(files, folder, text=term, hidden=False)
    where = printable(result.folder)
    if not result.files:
        return f'No matches found for "{term}" in {where}{incomplete(result)}'
    if result.files > LISTED:
        return f'More than {result.files} files matched for "{term}" in {where}. Please narrow your search.'
    found = [f"{path} ({lines} matches)" for path, lines in sorted(paths_of(result))]
    return matches(f'matches for "{term}" in {where}', result.lines, found) + incomplete(result)


def matches(what: str, number: int, found: Sequence[str]) -> str:
    return "\n".join([f"Found {number} {what}:", *found, f"End of {what}"])


def find_file(files: SandboxFiles, name: str, folder: str = ".") -> str:
    result = search(files, folder, name=name)
    where, found = printable(result.folder), [path for path, _ in sorted(paths_of(result))]
    if not found:
        return f'No matches found for "{name}" in {where}{incomplete(result)}'
    listed = found[:LISTED]
    rest = [f"(and {result.files - LISTED} more)"] if result.files > LISTED else []
    return "\n".join(
        [f'Found {result.files} matches for "{name}" in {where}:{incomplete(result)}', *listed, *rest]
    )


def search(
    files: SandboxFiles, folder: str, *, name: str = "*", text: str = "", hidden: bool = True
) -> FileSearch:
    try:
        return files.search(folder, name=name, text=text, hidden=hidden, seconds=SEARCH_SECONDS)
    except (FileNotFoundError, NotADirectoryError):
        raise ToolRefused(f"Directory {printable(folder)} not found") from None
    except OSError as error:
        raise refused(error, folder) from None


def paths_of(result: FileSearch) -> list[tuple[str, int]]:
    root = printable(result.folder).rstrip("/")
    return [(f"{root}/{printable(path)}", lines) for path, lines in result.found]


def incomplete(result: FileSearch) -> str:
    return "" if result.is_complete else f" (search incomplete: it took over {SEARCH_SECONDS:.0f} seconds)"
