"""Values of numpy and pandas as JSON. Sent to kernels as source text; needs Python 3.8 or newer."""

from __future__ import annotations

import json
from typing import Any


def to_json(value: Any, **options: Any) -> str:
    """The value as JSON text. Raises ValueError, which says what is not JSON."""
    try:
        return json.dumps(plain(value), **options)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{error}: convert it to numbers, texts, lists and dicts") from None


def plain(value: Any) -> Any:
    """The value with numbers and lists in place of those of numpy and pandas, which are not imported."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key if type(key) is tuple else plain(key): plain(child) for key, child in value.items()}
    return [plain(child) for child in value] if isinstance(value, (list, tuple)) else value
