"""The cache of sources. Each entry is completed in a temporary folder and then moved into place."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_super.errors import InfrastructureError


def stored(place: Path) -> Path | None:
    """The only folder in `place`; None if it has not been fetched yet."""
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
    """Move `tree`, which contains one folder, to `place`. If another process was faster, keep its folder."""
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.rename(tree, place)
    except OSError as error:
        # A rename onto a non-empty folder fails. The other process's folder has the same content.
        if stored(place) is None:
            raise InfrastructureError(f"the source cache {place} cannot be written: {error}") from None
    found = stored(place)
    assert found is not None
    return found
