"""The gateway: one process per run, through which every call of a model goes.

`gateway_process` starts it, gives it a lock to hold, and writes its settings and its token to its standard
input. It ends when nobody needs it any more: the process that started it keeps its standard input open, and
every client keeps a connection open.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import threading
from contextlib import suppress
from pathlib import Path
from time import monotonic

from pytest_super.kernel.inside.supervision import refuse_tracers
from pytest_super.model.caller import Caller
from pytest_super.model.gateway_server import GatewayServer
from pytest_super.model.provider import ModelProvider, NoModel
from pytest_super.model.rate_limit import HEAD_START, RateLimiter
from pytest_super.model.retry import RetryPolicy
from pytest_super.model.settings import SCRIPTED, ModelSettings

IDLE_SECONDS = 3.0


def main() -> None:
    """`python -m pytest_super.model.gateway FOLDER`: serve on FOLDER/socket."""
    folder = Path(sys.argv[1])
    socket = folder / "socket"
    socket.unlink(missing_ok=True)
    (folder / "pid").write_text(str(os.getpid()))
    # Linux hides our memory and environment from the user's other processes, such as code in a local sandbox.
    refuse_tracers()
    given = json.loads(sys.stdin.buffer.readline())
    starter_is_gone = watch_starter(folder, socket)
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


async def serve(settings: ModelSettings, token: str, socket: Path, starter_is_gone: threading.Event) -> None:
    """Serve until the starter is gone and no client has been connected for some seconds."""
    # It can import litellm, which takes seconds, in which the starter can end.
    server = GatewayServer(make_caller(settings), token)
    await server.listen(socket)
    idle_since = monotonic()
    while monotonic() - idle_since < IDLE_SECONDS:
        await asyncio.sleep(0.2)
        # The folder can disappear meanwhile.
        with suppress(OSError):
            if is_cut_off(socket):
                await server.listen(socket)
        if not starter_is_gone.is_set() or server.connections:
            idle_since = monotonic()


def is_cut_off(socket: Path) -> bool:
    """Whether somebody, such as a cleaner of temporary files, has removed the socket, and it alone.

    If the whole folder is gone, clients start another gateway, which has its id there.
    """
    pid = socket.with_name("pid")
    return not socket.exists() and pid.exists() and pid.read_text() == str(os.getpid())


def make_provider(settings: ModelSettings) -> ModelProvider:
    """Raises SuperError if a script is wrong."""
    if settings.needs_answers:
        return NoModel()
    # Imported here: a scripted run needs no client of HTTP.
    if settings.name.startswith(SCRIPTED):
        from pytest_super.model.scripted import ScriptedProvider

        return ScriptedProvider(Path(settings.name.removeprefix(SCRIPTED)))
    from pytest_super.model.known_model import import_litellm
    from pytest_super.model.named_model import NamedModel

    model = NamedModel(settings.name, settings.parameters)
    if model.needs_litellm and not settings.is_for_program:
        # Before the first call, which waits for it.
        threading.Thread(target=import_litellm, daemon=True).start()
    return model


def make_caller(settings: ModelSettings) -> Caller:
    """Raises OSError if calls cannot be booked, SuperError if a script is wrong."""
    calls = Path(settings.calls)
    retry = RetryPolicy(RateLimiter(head_start=HEAD_START), has_answers=lambda: calls.stat().st_size > 0)
    return Caller(settings, make_provider(settings), retry)


if __name__ == "__main__":
    main()
