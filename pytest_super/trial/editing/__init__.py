"""Editing a file, by an exact replacement in one place as in the SUPER paper (appendix E), and reading it."""

from __future__ import annotations

import errno
import json
import re
from itertools import chain, repeat
from typing import TYPE_CHECKING

from pytest_super.store.trajectory import Action
from pytest_super.trial.editing.feedback import done, not_found, several
from pytest_super.trial.editing.places import Place, end_of_line, has_text, line_places, text_places

if TYPE_CHECKING:
    from pytest_super.kernel.files import SandboxFiles


# A search makes a few copies of the file in memory.
LARGEST = 32 * 2**20
# Characters of a file name or an OS error in a message; real ones are shorter.
LONGEST = 4096
LINE_END = re.compile(rb"\r?\n")


class EditError(Exception):
    """The edit was not made. The text is the agent's observation."""


def edit_action(path: str, before: str, after: str) -> Action:
    content = json.dumps({"path": path, "before": before, "after": after}, ensure_ascii=False)
    return Action(type="edit", content=content)


def edit(data: bytes, before: str, after: str) -> tuple[bytes, Place]:
    """Replace the only occurrence of `before` in `data` by `after`; no other byte changes.

    Returns the new data, and the place of the new bytes in it.

    If `before` ends with a newline, both are whole lines: blank lines are equal whatever spaces they contain,
    and an empty `after` deletes the lines. Any other `before` is text, maybe a part of a line. A `before` of
    white space fills empty data. Both are encoded as UTF-8.

    A `before` without CRLF also matches lines with CRLF, and `after` then gets the line ends of the replaced
    lines: a model that writes LF does not see that a file has CRLF.

    Takes time linear in the size of `data`. Raises EditError.
    """
    old, new = encoded(before), encoded(after)
    if not has_text(old):
        return fill(data, new)
    place = find(data, old)
    if old.endswith(b"\n"):
        place = place if new else Place(place.start, end_of_line(data, place.end))
        new = new.removesuffix(b"\n")
    if b"\r\n" not in old:
        new = with_ends_of(data, place, new)
    return data[: place.start] + new + data[place.end :], Place(place.start, place.start + len(new))


def edit_file(files: SandboxFiles, path: str, before: str, after: str) -> tuple[str, str]:
    """Edit a file in the sandbox like `edit`. A `before` of white space creates a missing file.

    Returns the observation, always less than 50,000 characters, and the outcome `ok` or `error`.
    """
    try:
        data, place = edit(read(files, path, before), before, after)
        files.write(path, data)
    except EditError as error:
        return str(error), "error"
    except OSError as error:
        reason = " ".join((error.strerror or str(error))[:LONGEST].split())
        return f"ERROR: File {path[:LONGEST]} cannot be edited: {reason}.", "error"
    return done(data, place, is_deletion=not after), "ok"


def whole_lines(files: SandboxFiles, path: str, before: str, after: str) -> tuple[str, str]:
    """The same edit in whole lines, as agents write edits, or as it is if that is not possible."""
    try:
        return lines_around(files.read(path, LARGEST), before, after)
    except (EditError, OSError, UnicodeDecodeError):
        return before, after


def lines_around(data: bytes, before: str, after: str) -> tuple[str, str]:
    """Like `whole_lines`, of a file's content. Raises EditError, and UnicodeDecodeError without UTF-8."""
    if before.endswith("\n") or not has_text(encoded(before)):
        return before, after
    changed, place = edit(data, before, after)
    start = data.rfind(b"\n", 0, place.start) + 1
    end = end_of_line(data, place.end + len(data) - len(changed))
    old, new = data[start:end].decode(), changed[start : end + len(changed) - len(data)].decode()
    return (old, new) if old.endswith("\n") else (f"{old}\n", f"{new}\n")


def read(files: SandboxFiles, path: str, before: str) -> bytes:
    try:
        return files.read(path, LARGEST)
    except FileNotFoundError:
        if has_text(encoded(before)):
            raise EditError(f"ERROR: File {path[:LONGEST]} does not exist.") from None
        return b""
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        size = f"more than {LARGEST // 2**20} MiB"
        raise EditError(f"ERROR: File {path[:LONGEST]} is too large to edit: {size}.") from None


def encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise EditError("ERROR: The edit contains half of a surrogate pair, which is not text.") from None


def fill(data: bytes, new: bytes) -> tuple[bytes, Place]:
    if data:
        raise EditError(
            "No lines to replace were given, and the file is not empty. Give lines that it contains. To add "
            "lines, replace the line above or below them by itself and the new lines."
        )
    return new, Place(0, len(new))


def find(data: bytes, old: bytes) -> Place:
    """The only place of `old`. For whole lines it excludes the last line end, which the edit keeps."""
    places = line_places(data, old) if old.endswith(b"\n") else text_places(data, old)
    if len(places) == 1:
        return places[0]
    raise EditError(several(data, places) if places else not_found(data, old))


def with_ends_of(data: bytes, place: Place, new: bytes) -> bytes:
    """`new` with the line ends of the replaced lines in order. Further lines get the last of these.

    If no replaced line has a line end (at the end of the file), all get the line end of the line above.
    """
    replaced = LINE_END.findall(data[place.start : end_of_line(data, place.end)])
    if not replaced:
        above = data.rfind(b"\n", 0, place.start)
        replaced = [data[max(0, above - 1) : above + 1]]
    ends = chain(replaced, repeat(replaced[-1]))
    return LINE_END.sub(lambda end: b"\r\n" if next(ends) == b"\r\n" else end[0], new)


# As much as the host keeps of the beginning of a cell's output.
LARGEST_SHOWN = 100_000


def read_text(files: SandboxFiles, path: str) -> tuple[str, str]:
    """The observation and the outcome, `ok` or `error`. What is not UTF-8 is replaced by U+FFFD."""
    try:
        return files.read(path, LARGEST_SHOWN).decode("utf-8", "replace"), "ok"
    except OSError as error:
        reason = " ".join((error.strerror or str(error))[:LONGEST].split())
        if error.errno == errno.EFBIG:
            reason = f"it has more than {LARGEST_SHOWN:,} bytes; print parts of it in a cell"
        return f"ERROR: File {path[:LONGEST]} cannot be read: {reason}.", "error"
