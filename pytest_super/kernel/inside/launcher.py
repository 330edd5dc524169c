"""The program of the kernel's process: ipykernel, changed to capture all output, also of child processes.

Runs inside the sandbox and requires Python 3.8 and ipykernel 6, or newer. It is delivered as source text and
imports none of our modules. Its arguments are those of `python -m ipykernel_launcher`.

ipykernel reads the output of child processes (file descriptors 1 and 2) in a separate thread and does not
wait for it at the end of a cell: for one `subprocess.run` in twenty, the last lines arrive after the cell's
idle message or after a later print. Its reader also cuts multi-byte characters at every 1000 bytes.
"""

from __future__ import annotations

import codecs
import ctypes
import importlib
import json
import os
import select
import struct
import sys
import threading
from typing import Any

# Linux's default size of a pipe, so that one read empties it.
PIPE_CAPACITY = 65536
poll_holding_lock = ctypes.PyDLL(None).poll
poll_holding_lock.argtypes = (ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int)


def has_data(descriptor: int) -> bool:
    """Whether a read would return data. Unlike the read, it does not release the interpreter's lock.

    Other threads ask for the lock after 5 ms without a release. A loop of prints that released it each time,
    and took it back at once, would starve ipykernel's output thread for seconds.
    """
    polled = ctypes.create_string_buffer(struct.pack("ihh", descriptor, select.POLLIN, 0))
    return bool(poll_holding_lock(polled, 1, 0) > 0)


# A placeholder: `main` must act before ipykernel is imported, and then combines both classes.
OutStream: Any = object


class CompleteStream(OutStream):  # type: ignore[misc]
    """A mixin for ipykernel's OutStream: `write` and `flush` first forward the output of child processes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Set before the base class starts its thread. Reentrant, because a signal handler can print.
        self._forward_lock = threading.RLock()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        super().__init__(*args, **kwargs)

    def _watch_pipe_fd(self) -> None:
        # Threads that print also read it, and must not wait for output that does not come.
        os.set_blocking(self._fid, False)
        readable = select.poll()
        readable.register(self._fid, select.POLLIN)
        while self._should_watch:
            readable.poll()
            self._forward()

    def _forward(self) -> None:
        # A forked child has the same pipe: it would take output that the parent must forward.
        if not self._should_watch or os.getpid() != self._master_pid:
            return
        # Read and written under one lock, so that two threads cannot swap pieces of the output.
        with self._forward_lock:
            if not has_data(self._fid):
                return
            try:
                data = os.read(self._fid, PIPE_CAPACITY)
            except OSError:
                return
            if data:
                super().write(self._decoder.decode(data))

    def write(self, string: str) -> Any:
        self._forward()
        return super().write(string)

    def flush(self) -> None:
        self._forward()
        super().flush()


def do_without_debugger() -> None:
    """Disable ipykernel's debugger: its import takes a fifth of the kernel's start and prints warnings."""
    # None makes its import fail. ipykernel tries that once, when this module is imported.
    sys.modules["debugpy"] = None  # type: ignore[assignment]
    try:
        importlib.import_module("ipykernel.debugger")
    except ImportError:
        return
    finally:
        # Code in a cell can still import it.
        del sys.modules["debugpy"]


def pack(message: Any) -> bytes:
    """A message in JSON. Jupyter raises for lone surrogates, and loses the output around them."""
    try:
        return bytes(sys.modules["jupyter_client.session"].json_packer(message))
    except UnicodeEncodeError:
        # In ASCII they are escapes, which the host replaces.
        return json.dumps(message, default=str).encode()


def main() -> None:
    # Python added the folder of this file, from which cells must not import.
    del sys.path[0]
    do_without_debugger()
    from ipykernel import iostream, kernelapp

    # A private name of ipykernel. A version without it keeps its own way to read child processes' output.
    if hasattr(iostream.OutStream, "_watch_pipe_fd"):
        combined: Any = type("OutStream", (CompleteStream, iostream.OutStream), {})
        iostream.OutStream = combined  # type: ignore[misc]
    kernelapp.launch_new_instance([*sys.argv[1:], "--Session.packer=__main__.pack"])


if __name__ == "__main__":
    main()
