"""Stored data can be damaged or edited: its types are checked before anything is computed from it."""

from __future__ import annotations

from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, TypeVar

from pytest_super.store.json_lines import to_line

if TYPE_CHECKING:
    from typing import Any

    from pydantic import TypeAdapter

    from pytest_super.store.results import TrialResult

T = TypeVar("T")


def checked(kind: type[T], data: dict[str, Any]) -> T:
    """A `kind` whose fields have the types of their annotations. Raises ValueError."""
    # Not at the top, because most runs read no stored data.
    from pydantic import ValidationError

    try:
        return adapter(kind).validate_json(to_line(data), strict=True)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}") from None


@cache
def adapter(kind: type[T]) -> TypeAdapter[T]:
    """Made once, which takes milliseconds."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def checked_result(result: TrialResult) -> TrialResult:
    """Raises ValueError if a field has another type than was written, or a metric is not finite."""
    valid = checked(type(result), result.to_data())
    for name, value in valid.metrics.items():
        if value is not None and not isfinite(value):
            raise ValueError(f"the metric {name} of {valid.name} is not a finite number")
    return valid
