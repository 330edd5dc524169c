"""The window of a file that SWE-agent shows, and the lines of a file as bytes."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_super.agents.swe.files import printable

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
