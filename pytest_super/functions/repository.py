"""Masks functions of the files in a folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from pytest_super.errors import SuperError
from pytest_super.functions.edits import Docstrings, Stub
from pytest_super.functions.masking import MaskedFile, mask_file
from pytest_super.functions.names import by_file, of_file
from pytest_super.functions.source import PythonSource
from pytest_super.reading import read_bytes
from pytest_super.words import did_you_mean


def mask_functions(
    repository: Path,
    targets: Iterable[str],
    *,
    output: Path | None = None,
    docstrings: Docstrings = "keep",
    stub: Stub = "raise",
    nested: bool = False,
) -> dict[str, MaskedFile]:
    """Mask functions in a folder, or in a copy of it.

    Args:
        repository: the folder.
        targets: `path/to/file.py::Class.method`; see `mask_file` for the names.
        output: where to write the copy, which must not exist. None changes the folder itself.
        docstrings: kept, dropped, or new ones by target.
        stub: what the functions do instead.
        nested: whether targets can be parts of others, which are masked then.

    Returns:
        The changed files by path.

    Raises:
        SourceError: a target cannot be masked. Nothing is written then.
        SuperError: a target has no valid path, or the output cannot be written.
    """
    masked = masked_files(repository, targets, docstrings=docstrings, stub=stub, nested=nested)
    write(repository, output, masked)
    return masked


def masked_files(
    repository: Path,
    targets: Iterable[str],
    *,
    docstrings: Docstrings = "keep",
    stub: Stub = "raise",
    nested: bool = False,
) -> dict[str, MaskedFile]:
    """The same without writing anything."""
    return {
        path: mask_file(
            PythonSource.read(path, read(repository, path)),
            names,
            docstrings=docstrings if isinstance(docstrings, str) else of_file(docstrings, path),
            stub=stub,
            nested=nested,
        )
        for path, names in by_file(targets).items()
    }


def read(repository: Path, path: str) -> bytes:
    file = repository / path
    try:
        if not file.resolve(strict=True).is_relative_to(repository.resolve()):
            raise SuperError(f"{path}: it is a link to a file outside {repository}")
        return read_bytes(file)
    except FileNotFoundError:
        files = [one.relative_to(repository).as_posix() for one in repository.rglob("*.py")]
        raise SuperError(f"{path}: {repository} has no such file{did_you_mean(path, files)}") from None
    except OSError as error:
        raise SuperError(f"{path}: it cannot be read: {error.strerror}") from None


def write(repository: Path, output: Path | None, masked: dict[str, MaskedFile]) -> None:
    """Write the files; in `output` only after the whole folder is copied."""
    try:
        if output is not None:
            if output.exists():
                raise SuperError(f"{output} exists")
            shutil.copytree(repository, output, symlinks=True)
        for path, file in masked.items():
            replace_content((output or repository) / path, file.data)
    except OSError as error:
        raise SuperError(f"{output or repository} cannot be written: {error.strerror or error}") from None


def replace_content(file: Path, data: bytes) -> None:
    """Replace a file's content at once, so that no kill leaves a part of it; its mode stays."""
    file = file.resolve()
    new = file.with_name(f".{file.name}.masked")
    new.write_bytes(data)
    shutil.copymode(file, new)
    os.replace(new, file)
