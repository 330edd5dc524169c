"""The gateway: one process per machine and run, through which every call of a model goes.

`gateway_process` starts it, gives it a lock to hold, and writes its settings and its token to its standard
input. It ends when nobody needs it any more: the process that started it keeps its standard input open, and
every client keeps a connection open.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from pathlib import Path

from pytest_super.kernel.inside.supervision import refuse_tracers
from pytest_super.model.settings import ModelSettings


def main() -> None:
    """`python -m pytest_super.model.gateway FOLDER`: serve on FOLDER/socket."""
    folder = Path(sys.argv[1])
    socket = folder / "socket"
    socket.unlink(missing_ok=True)
    # Before the socket exists, because a client that finds this gateway hanging kills it by this id.
    (folder / "pid").write_text(str(os.getpid()))
    # Linux hides our memory and environment from the user's other processes, such as code in a local sandbox.
    refuse_tracers()
    given = json.loads(sys.stdin.buffer.readline())
    starter_is_gone = watch_starter(folder, socket)
    # Imported here, because the imports take seconds, in which the starter can end.
    import asyncio

    from pytest_super.model.gateway_server import serve

    asyncio.run(serve(ModelSettings(**given["settings"]), given["token"], socket, starter_is_gone))
    shutil.rmtree(folder, ignore_errors=True)


def watch_starter(folder: Path, socket: Path) -> threading.Event:
    """Set the event when the process that started us has ended. If we do not serve yet, end at once."""
    is_gone = threading.Event()

    def watch() -> None:
        while os.read(0, 4096):
            pass
        is_gone.set()
        # Without a socket no client is connected. One that waits for it starts another gateway.
        if not socket.exists():
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(0)

    # A daemon thread, because its read lasts as long as the starter lives.
    threading.Thread(target=watch, daemon=True).start()
    return is_gone


if __name__ == "__main__":
    main()
