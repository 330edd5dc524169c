"""The file that `--json=FILE` names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_super.errors import SuperError

if TYPE_CHECKING:
    from pathlib import Path


def write_json(path: Path, data: object) -> None:
    """Raises SuperError when the file cannot be written."""
    try:
        path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise SuperError(f"{path} cannot be written: {error.strerror}") from None
