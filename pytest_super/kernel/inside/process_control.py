"""What Linux does for our own process on request, mostly by prctl. Other systems do nothing.

Delivered into the sandbox.
"""

from __future__ import annotations

from ctypes import CDLL, c_int
from signal import SIGCONT
from typing import Any

PR_SET_PDEATHSIG, PR_GET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 2, 4, 36
# A user that nobody is, and that the usual 65,536 ids of a user namespace include.
OTHER_UID = 65533


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that `kill_descendants` finds it."""
    request(PR_SET_CHILD_SUBREAPER, 1)


def go_on_when_parent_ends() -> None:
    """Have SIGCONT sent to us when our parent ends: if code inside has stopped us, we wake up and end too.

    A provider can have asked for SIGKILL, after which code inside cannot stop us again.
    """
    asked_for = (c_int * 1)()
    request(PR_GET_PDEATHSIG, asked_for)
    if not asked_for[0]:
        request(PR_SET_PDEATHSIG, SIGCONT)


def refuse_tracers() -> None:
    """Let no process that is not privileged on the host read or change our memory, even one of root's."""
    request(PR_SET_DUMPABLE, 0)


def refuse_limits() -> None:
    """If we are root, let no process change our resource limits unless it has the capability for that.

    SIGKILL at the limit of processor time ends even the first process of a container.
    """
    try:
        # Only a process whose user is all three of another's can set the other's limits. Not by `os`, which
        # raises for another user than root.
        CDLL(None).setresuid(-1, -1, OTHER_UID)
    except (OSError, AttributeError):
        # macOS does not have it.
        return


def request(option: int, value: Any) -> None:
    try:
        CDLL(None).prctl(option, value, 0, 0, 0)
    except (OSError, AttributeError):
        # Only Linux has prctl.
        return
