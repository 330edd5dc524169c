"""No attack is open: each is blocked, or the result says that it was tried."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.attacks.all import ATTACKS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.attacks.attack import Attack


@pytest.mark.long
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_no_attack_is_open(attack: Attack, tmp_path: Path) -> None:
    missing = [name for name in attack.needs if shutil.which(name) is None]
    if missing and not os.environ.get("CI"):
        pytest.skip(f"there is no {', '.join(missing)}")
    assert attack.run(tmp_path) in ("blocked", "flagged")
