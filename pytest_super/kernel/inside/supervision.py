"""The parent process of the bridge, which ends the processes that a killed bridge leaves.

Also what Linux does for our own process on request, mostly by prctl; other systems do nothing. Delivered into
the sandbox.
"""

from __future__ import annotations

import os
import signal
import sys
from ctypes import CDLL, c_int
from signal import SIGCONT
from typing import Any

from pytest_super.kernel.inside import processes

# Not 128 plus the signal's number: 137 would mean that this process itself was killed. As the first of a
# container it can be killed only from outside.
KILLED = 3
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


def supervise(folders: list[str]) -> None:
    """Return in a new process, the bridge; this one waits for it, cleans up, and ends with its status."""
    # The bridge inherits it.
    refuse_tracers()
    bridge = os.fork()
    if bridge == 0:
        return
    refuse_limits()
    processes.import_from_standard_library()
    # Our copies would keep the stream open after the bridge's end.
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    # Code inside can have stopped the bridge, which has to wake up to see the end of its stream.
    signal.signal(signal.SIGCONT, lambda *_: processes.send_signal(bridge, signal.SIGCONT))
    # As the first process of a container we get only the signals that we handle: the engine's SIGTERM.
    signal.signal(signal.SIGTERM, lambda *_: processes.send_signal(bridge, signal.SIGTERM))
    go_on_when_parent_ends()
    adopt_orphans()
    status = os.waitpid(bridge, 0)[1]
    processes.kill_descendants()
    processes.remove(folders)
    if os.WIFSIGNALED(status):
        print(f"the bridge was killed by signal {os.WTERMSIG(status)}", file=sys.stderr, flush=True)
        os._exit(KILLED)
    os._exit(os.WEXITSTATUS(status))
