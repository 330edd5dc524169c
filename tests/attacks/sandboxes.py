"""Attacks on the host from inside a bubblewrap sandbox, as root and as a user."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pytest_super.kernel.providers.unprivileged import closed_parents
from tests.attacks.trials import LONGEST_WAIT, Outcome

CHECKOUT = Path(__file__).parents[2]
ROOT, USER = "root", "a user"
# A user without an account, whom nothing on the machine belongs to.
NUMBER = 61183


def gained(kind: str) -> dict[str, str]:
    """What each attack of a process of this user has gained."""
    probe = [sys.executable, "-m", "tests.attacks.sandbox_probe"]
    with tempfile.TemporaryDirectory() as folder:
        command = probe if kind == ROOT or os.geteuid() != 0 else as_user(probe, Path(folder))
        done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=LONGEST_WAIT)
    if done.returncode != 0:
        raise RuntimeError(f"the attacks cannot be tried as {kind}:\n{done.stderr}")
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def as_user(command: list[str], folder: Path) -> list[str]:
    """The command run by another user, in mounts of its own that show Python and the checkout."""
    os.chmod(folder, 0o755)
    become = ["setpriv", f"--reuid={NUMBER}", f"--regid={NUMBER}", "--clear-groups"]
    run = ["env", f"HOME={folder}", "PYTHONDONTWRITEBYTECODE=1", *command]
    steps = [*shown(folder), ["cd", str(CHECKOUT)], ["exec", *become, *run]]
    return ["unshare", "--mount", "--propagation=private", "sh", "-ec", "\n".join(map(shlex.join, steps))]


def shown(folder: Path) -> Iterator[list[str]]:
    """The commands that put empty folders over private ones, with only what the user needs in them."""
    needed = {Path(one).resolve() for one in (sys.prefix, sys.base_prefix, CHECKOUT)}
    outer = [one for one in needed if not any(one.is_relative_to(other) for other in needed - {one})]
    private = {one: closed[-1] for one in outer if (closed := closed_parents(one))}
    for number, one in enumerate(private):
        yield ["mkdir", str(folder / str(number))]
        yield ["mount", "--rbind", str(one), str(folder / str(number))]
    for one in sorted({*private.values()}):
        yield ["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(one)]
    for number, one in enumerate(private):
        yield ["mkdir", "-p", str(one)]
        yield ["mount", "--rbind", str(folder / str(number)), str(one)]


def outcomes_as(kind: str) -> dict[str, Outcome]:
    """What came of each attack of a process of this user."""
    found = gained(kind)
    is_isolated = found.pop("isolated") != "False"
    return {
        name: "blocked" if not one else "open" if is_isolated else "flagged" for name, one in found.items()
    }


KINDS = (ROOT, USER) if os.geteuid() == 0 else (USER,)
