"""The parent process of the bridge, which ends the processes that a killed bridge leaves.

Delivered into the sandbox.
"""

from __future__ import annotations

import os
import signal
import sys

from pytest_super.kernel.inside import process_control, processes

# Not 128 plus the signal's number: 137 would mean that this process itself was killed. As the first of a
# container it can be killed only from outside.
KILLED = 3


def supervise(folders: list[str]) -> None:
    """Return in a new process, the bridge. This process waits for its end and ends with the same status.

    Before that it kills what a bridge that was killed has left, and removes the folders. If a signal has
    ended the bridge, the status is KILLED and the last line of standard error names the signal.
    """
    # The bridge inherits it.
    process_control.refuse_tracers()
    bridge = os.fork()
    if bridge == 0:
        return
    process_control.refuse_limits()
    processes.import_from_standard_library()
    # Our copies would keep the stream open after the bridge's end.
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    # Code inside can have stopped the bridge, which has to wake up to see the end of its stream.
    signal.signal(signal.SIGCONT, lambda *_: processes.send_signal(bridge, signal.SIGCONT))
    # As the first process of a container we get only the signals that we handle: the engine's SIGTERM.
    signal.signal(signal.SIGTERM, lambda *_: processes.send_signal(bridge, signal.SIGTERM))
    process_control.go_on_when_parent_ends()
    process_control.adopt_orphans()
    status = os.waitpid(bridge, 0)[1]
    processes.kill_descendants()
    processes.remove(folders)
    if os.WIFSIGNALED(status):
        print(f"the bridge was killed by signal {os.WTERMSIG(status)}", file=sys.stderr, flush=True)
        os._exit(KILLED)
    os._exit(os.WEXITSTATUS(status))
