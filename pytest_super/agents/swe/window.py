"""The window of a file that SWE-agent shows, and the lines of a file as bytes."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from pytest_super.kernel.files import FileSearch, SandboxFiles

LARGEST = 32 * 2**20
# A zero byte in this many first bytes makes a file binary, as in git.
TEXT_SAMPLE = 8192


class ToolRefused(Exception):
    """The command was not carried out. The text tells the agent why."""


class MissingFile(ToolRefused):
    """The file does not exist."""


def read(files: SandboxFiles, name: str) -> bytes:
    """The bytes of a text file of at most LARGEST bytes. Raises ToolRefused."""
    try:
        data = files.read(name, LARGEST)
    except OSError as error:
        raise refused(error, name) from None
    if b"\0" in data[:TEXT_SAMPLE]:
        raise ToolRefused(f"Error: {printable(name)} is a binary file, which the editor cannot show")
    return data


def write(files: SandboxFiles, name: str, data: bytes) -> None:
    """Raises ToolRefused."""
    try:
        files.write(name, data)
    except OSError as error:
        raise refused(error, name) from None


def exists(files: SandboxFiles, name: str) -> bool:
    """Whether anything has this name."""
    try:
        # Reads nothing: with the limit 0, a file that has content raises OSError.
        files.read(name, 0)
    except OSError as error:
        return not isinstance(error, FileNotFoundError)
    return True


def refused(error: OSError, name: str) -> ToolRefused:
    name = printable(name)
    if isinstance(error, FileNotFoundError):
        return MissingFile(f"File {name} not found")
    if error.errno == errno.EFBIG:
        return ToolRefused(
            f"Error: {name} is larger than {LARGEST // 2**20} MiB: use a cell to look at parts of it"
        )
    return ToolRefused(f"Error: {name}: {error.strerror or error}")


def printable(name: str) -> str:
    """A name as text that can be encoded; bytes that are not UTF-8 are replaced."""
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        # A model can write a surrogate that does not stand for a byte.
        return name.encode("utf-8", "replace").decode("utf-8")


WINDOW = 100
# Lines that the windows before and after a scroll share.
OVERLAP = 2
# Bytes of text in a window. In a longer one each line is cut, so that the beginning of every line is shown.
SHOWN = 40_000


def lines_of(data: bytes) -> list[bytes]:
    """The lines, with their newlines; only a newline ends a line, and the last one can lack it."""
    *lines, last = data.split(b"\n")
    return [line + b"\n" for line in lines] + ([last] if last else [])


def within(center: int, total: int, size: int = WINDOW) -> int:
    """The center, moved so that the window does not extend beyond an end of the file if it can be avoided."""
    return max(min(center, total - size // 2), size // 2)


def window(path: str, lines: Sequence[bytes], center: int, size: int = WINDOW) -> str:
    """`size` numbered lines, `center` being the last of the first half, and the numbers of other lines."""
    total = len(lines)
    end = min(within(center, total, size) + size // 2, total)
    start = max(0, end - size)
    parts = [f"[File: {printable(path)} ({total} lines total)]"]
    if start:
        parts.append(f"({start} more lines above)")
    parts += [f"{number}:{text}" for number, text in enumerate(shown_lines(lines[start:end]), start + 1)]
    if end < total:
        parts.append(f"({total - end} more lines below)")
    return "\n".join(parts)


def shown_lines(lines: Sequence[bytes]) -> list[str]:
    """The lines as text without their line ends; if they are too long in total, each is cut."""
    if sum(map(len, lines)) <= SHOWN:
        return [text_of(line) for line in lines]
    return [cut(line, SHOWN // len(lines)) for line in lines]


def cut(line: bytes, limit: int) -> str:
    if len(line) <= limit:
        return text_of(line)
    return f"{text_of(line[:limit])} (... {len(line) - limit} more bytes)"


def text_of(line: bytes) -> str:
    return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "replace")


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
