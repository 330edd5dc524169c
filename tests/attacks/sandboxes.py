"""Attacks on the host from inside a bubblewrap sandbox, as root and as a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.attacks.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
