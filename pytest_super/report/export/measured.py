"""The fields of a result for other tools: null where a trial has no value, or where nothing was measured.

Results on disk have 0 and "" in such places, which a mean or a count of another tool would take for values.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from pytest_super.store.results import TrialResult

if TYPE_CHECKING:
    from collections.abc import Iterator

# By the annotation of a field, without `| None`: those that hold a single value.
FLAT = ("str", "int", "float", "bool")
OF_MODEL = ("prompt_tokens", "cached_tokens", "completion_tokens", "model_seconds", "waited_seconds")
OF_END = ("wall_seconds", "compute_seconds", "model_seconds", "waited_seconds", "dropped")


def flat_fields() -> dict[str, str]:
    """The fields of a result that hold a single value, with the names of their types."""
    kinds = {one.name: str(one.type).removesuffix(" | None") for one in fields(TrialResult)}
    return {name: kind for name, kind in kinds.items() if kind in FLAT}


def known_values(result: TrialResult) -> dict[str, Any]:
    """All fields of a result, with None for every one that is not known. Raises RecursionError."""
    data = result.to_data()
    unknown = set(unknown_fields(result))
    return {name: None if value == "" or name in unknown else value for name, value in data.items()}


def unknown_fields(result: TrialResult) -> Iterator[str]:
    if result.is_error or result.is_interrupted:
        # Neither solved nor missed.
        yield from ("solved", *(() if result.submitted else ("submitted",)))
    if result.model is None:
        yield from (name for name in OF_MODEL if not getattr(result, name))
    # Every trial takes some time, unless the process that ran it died before it could tell.
    if not result.wall_seconds:
        yield from (name for name in OF_END if not getattr(result, name))
    if not result.graded_in:
        yield "grade_seconds"
