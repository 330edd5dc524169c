"""Stored results can be damaged or edited: their types are checked before anything is computed from them."""

from __future__ import annotations

import json
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from pytest_super.store.results import TrialResult


def checked_result(result: TrialResult) -> TrialResult:
    """A result as it was read.

    Raises ValueError if a field has another type than was written, or a metric is not finite.
    """
    # Not at the top, because most runs read no stored results.
    from pydantic import ValidationError

    try:
        valid = adapter().validate_json(json.dumps(vars(result)), strict=True)
    except ValidationError as error:
        wrong = error.errors()[0]
        place = ".".join(map(str, wrong["loc"]))
        raise ValueError(f"the field {place} has a value of another kind than was written") from None
    for name, value in valid.metrics.items():
        if value is not None and not isfinite(value):
            raise ValueError(f"the metric {name} of {valid.name} is not a finite number")
    return valid


@cache
def adapter() -> TypeAdapter[TrialResult]:
    """Made once, which takes milliseconds."""
    from pydantic import TypeAdapter

    from pytest_super.store.results import TrialResult

    return TypeAdapter(TrialResult)
