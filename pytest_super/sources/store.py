"""The cache of sources: a folder a content, made whole beside it and moved into place."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Iterator


def stored(place: Path) -> Path | None:
    """The one folder at `place`; None when it was not fetched yet."""
    return next(place.iterdir(), None) if place.is_dir() else None


@contextmanager
def workshop(cache: Path) -> Iterator[Path]:
    """A temporary folder on the cache's own file system."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".fetching-", dir=cache))
    except OSError as error:
        raise InfrastructureError(f"the source cache {cache} cannot be written: {error}") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def store(tree: Path, place: Path) -> Path:
    """Move `tree`, which holds the one folder, to `place`; what another process put there first stays."""
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.rename(tree, place)
    except OSError as error:
        # A rename onto a full folder fails: the other process's content is the same.
        if stored(place) is None:
            raise InfrastructureError(f"the source cache {place} cannot be written: {error}") from None
    found = stored(place)
    assert found is not None
    return found
