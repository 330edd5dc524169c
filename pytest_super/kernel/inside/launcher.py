"""The program of the kernel's process: ipykernel as it is, but with the output of child processes complete.

Runs inside the sandbox, with whatever Python (3.8 or newer) and ipykernel (6 or newer) are there; it is
delivered as source text and imports nothing of ours. Arguments are those of `python -m ipykernel_launcher`.

ipykernel reads what child processes write to file descriptors 1 and 2 in a thread of its own, without waiting
for it at the end of a cell: one `subprocess.run` in twenty loses its last lines to after the cell's idle
message, or shows them behind a later print. Its reader also cuts multi-byte characters at every 1000 bytes.
"""

from __future__ import annotations

import codecs
import importlib
import os
import select
import sys
import threading
import time
from typing import Any

# All that was in the pipe when we look: what Linux gives a pipe by default.
PIPE_CAPACITY = 65536
# A child process takes longer to run: prints that are closer together have no child's output between them.
CARRY_INTERVAL = 0.001


def complete_stream(base: Any) -> Any:
    """A subclass of ipykernel's OutStream whose `write` and `flush` first carry what children wrote."""

    class CompleteStream(base):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            # Before the base starts the watching thread. Reentrant, because a signal handler may print.
            self._carry_lock = threading.RLock()
            self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
            self._carried = 0.0
            super().__init__(*args, **kwargs)

        def _watch_pipe_fd(self) -> None:
            os.set_blocking(self._fid, False)
            readable = select.poll()
            readable.register(self._fid, select.POLLIN)
            while self._should_watch:
                readable.poll()
                self._carry()

        def _carry(self) -> None:
            if not self._should_watch or os.getpid() != self._master_pid:
                return
            with self._carry_lock:
                try:
                    data = os.read(self._fid, PIPE_CAPACITY)
                except OSError:
                    return
                if data:
                    super().write(self._decoder.decode(data))

        def write(self, string: str) -> Any:
            now = time.monotonic()
            if now - self._carried > CARRY_INTERVAL:
                self._carried = now
                self._carry()
            return super().write(string)

        def flush(self) -> None:
            self._carry()
            super().flush()

    return CompleteStream


def do_without_debugger() -> None:
    """Nobody attaches a debugger; its import takes a fifth of the kernel's start and prints warnings."""
    sys.modules["debugpy"] = None  # type: ignore[assignment]
    try:
        importlib.import_module("ipykernel.debugger")
    except ImportError:
        return
    finally:
        # Code in a cell may import it all the same.
        del sys.modules["debugpy"]


def main() -> None:
    # The folder of this file is not the user's to import from.
    del sys.path[0]
    do_without_debugger()
    from ipykernel import iostream, kernelapp

    if hasattr(iostream.OutStream, "_watch_pipe_fd"):
        iostream.OutStream = complete_stream(iostream.OutStream)  # type: ignore[misc]
    kernelapp.launch_new_instance()


if __name__ == "__main__":
    main()
