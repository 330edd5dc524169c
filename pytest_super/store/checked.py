"""Stored results can be damaged or edited: their types are checked before anything is computed from them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.reading import read_text
from pytest_super.store.results import TrialResult
from pytest_super.tasks.fields import TASK_ID

if TYPE_CHECKING:
    from pydantic import TypeAdapter

# Larger numbers cannot be computed with: those of a damaged file can have any number of digits.
LARGEST = 1e15


def checked_result(result: TrialResult) -> TrialResult:
    """A result as it was read. Raises ValueError if a field has another type, or a number is not finite."""
    return checked_line(json.dumps(vars(result)))


def checked_lines(path: Path) -> Iterator[TrialResult]:
    """The results in the lines of a file, without lines that are cut. Raises ValueError as `checked_line`."""
    for line in read_text(path).split("\n") if path.exists() else ():
        try:
            yield checked_line(line)
        except ValueError:
            if is_json(line):
                raise


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def checked_line(line: str | bytes) -> TrialResult:
    """The result in a line of JSON. Raises ValueError for the same reasons, and if it is none."""
    # Not at the top, because most runs read no stored results.
    from pydantic import ValidationError

    try:
        valid = adapter().validate_json(line, strict=True)
    except ValidationError as error:
        wrong = error.errors()[0]
        if not wrong["loc"]:
            raise ValueError("it is not a complete result") from None
        place = ".".join(map(str, wrong["loc"]))
        raise ValueError(f"the field {place} has a value of another kind than was written") from None
    for name, value in vars(valid).items():
        if isinstance(value, int | float) and not abs(value) < LARGEST:
            raise ValueError(f"the field {name} is not a finite number")
    # It becomes a part of paths.
    if not re.fullmatch(TASK_ID, valid.id):
        raise ValueError("its id is none of a task")
    for name, value in valid.metrics.items():
        if value is not None and not isfinite(value):
            raise ValueError(f"the metric {name} of {valid.name} is not a finite number")
    return valid


@cache
def adapter() -> TypeAdapter[TrialResult]:
    """Made once, which takes milliseconds."""
    from pydantic import TypeAdapter

    return TypeAdapter(TrialResult)
