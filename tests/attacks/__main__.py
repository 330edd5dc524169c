"""`python -m tests.attacks [WORD]`: a line for each attack; exit status 1 if one is open."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from tests.attacks.all import ATTACKS


def main(word: str = "") -> int:
    outcomes = []
    for attack in (one for one in ATTACKS if word in one.name):
        if missing := [name for name in attack.needs if shutil.which(name) is None]:
            print(f"not tried  {attack.name}: there is no {', '.join(missing)}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            outcomes.append(attack.run(Path(folder)))
        print(f"{outcomes[-1]:<9}  {attack.name}", flush=True)
    print(", ".join(f"{outcomes.count(one)} {one}" for one in ("blocked", "flagged", "open")))
    return int("open" in outcomes)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
