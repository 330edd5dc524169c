"""An exact edit of a file's bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_super.kernel.client import Kernel


class EditError(Exception):
    """The edit was not made; the text says why."""


def replace_once(data: bytes, before: str, after: str) -> bytes:
    """`data` with `before`, which must stand in it exactly once, replaced by `after`; no other byte changes.

    Both texts are UTF-8. Raises EditError.
    """
    found = data.count(before.encode())
    if found == 0:
        raise EditError("The text to replace was not found in the file.")
    if found > 1:
        raise EditError(f"The text to replace stands {found} times in the file: give more of its context.")
    return data.replace(before.encode(), after.encode())


def edit_file(kernel: Kernel, path: str, before: str, after: str) -> tuple[str, str]:
    """Edit a file in the sandbox; returns what to say of it and `ok` or `error`."""
    try:
        data = replace_once(kernel.read_file(path), before, after)
        kernel.write_file(path, data)
    except EditError as error:
        return str(error), "error"
    except OSError as error:
        return f"{path}: {error.strerror or error}", "error"
    return f"{path} was edited.", "ok"
