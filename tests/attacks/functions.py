"""Attacks on the set functions: files and bodies that agents write."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.attacks.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
