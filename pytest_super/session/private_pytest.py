"""Reads the one private attribute of pytest that is used: an item's `_fixtureinfo`, where it exists.

Without it, collection is slower, and prefixes run in every trial instead of starting from snapshots.
"""

from __future__ import annotations

from typing import Any

import pytest


def fixture_closure(item: pytest.Item) -> Any:
    """The fixtures of `item`, to be passed as `fixtureinfo` to other items; None lets pytest compute them."""
    return getattr(item, "_fixtureinfo", None)


def fixture_definitions(item: pytest.Item) -> list[pytest.FixtureDef[Any]] | None:
    """The fixtures that `item` will use, overridden ones included; None if the attribute is missing."""
    by_name = getattr(fixture_closure(item), "name2fixturedefs", None)
    return None if by_name is None else [one for found in by_name.values() for one in found]


def is_own(fixture: pytest.FixtureDef[Any]) -> bool:
    """Whether a fixture is one of ours, and not one of a project in its place."""
    return bool(fixture.func.__module__ == "pytest_super.session.trial.fixtures")
