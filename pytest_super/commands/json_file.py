"""The file that `--json=FILE` names."""

import json
from pathlib import Path

from pytest_super.errors import SuperError


def write_json(path: Path, data: object) -> None:
    """Raises SuperError when the file cannot be written."""
    try:
        path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise SuperError(f"{path} cannot be written: {error.strerror}") from None
