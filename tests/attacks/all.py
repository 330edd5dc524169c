"""All attacks, in the order in which they are tried."""

from __future__ import annotations

from tests.attacks import functions, graders, sandboxes

ATTACKS = (*graders.ATTACKS, *functions.ATTACKS, *sandboxes.ATTACKS)
