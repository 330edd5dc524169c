"""The user's cache folder."""

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """The folder `name` in the user's cache (XDG), which need not exist."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pytest-super" / name
