"""The gateway: one process per machine and run, through which every call of a model goes.

An OpenAI-compatible server on a unix socket, with litellm behind it; `api` lists its requests. Keys, retries,
rate limits, budgets and records are here and nowhere else. `gateway_process` starts it and gives it a lock to
hold. It ends when nobody needs it any more: the process that started it keeps its standard input open, and
every client keeps a connection open.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import secrets
import shutil
import sys
import threading
import traceback
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from aiohttp import web

from pytest_super.model.api import CHAT, HEALTH, MODELS, TRIALS, UNKNOWN_TRIAL, USAGE
from pytest_super.model.caller import Caller, KnownTrial
from pytest_super.model.failures import Failure
from pytest_super.model.provider import make_provider
from pytest_super.model.responses import Refusal, read_request, response_to
from pytest_super.model.retry import RetryPolicy
from pytest_super.model.settings import ModelSettings

if TYPE_CHECKING:
    from pytest_super.model.provider import ModelProvider

# Prompts grow with a trial: 50,000 characters of the last observation, and hundreds of steps before it.
MAX_REQUEST = 256 * 2**20
IDLE_SECONDS = 3.0
# An idle connection of a client is kept for as long as a trial can take.
KEEP_ALIVE_SECONDS = 7 * 86400
# Connections not accepted yet, when a program in each of many workers asks at once.
BACKLOG = 4096


class GatewayServer:
    """Answers HTTP requests, and knows which trial each one belongs to."""

    def __init__(
        self, settings: ModelSettings, provider: ModelProvider | None = None, retry: RetryPolicy | None = None
    ) -> None:
        """Raises OSError if calls cannot be booked, SuperError if a script is wrong."""
        self.settings = settings
        self.caller = Caller(settings, provider or make_provider(settings), retry or RetryPolicy())
        self._trials: dict[str, KnownTrial] = {}
        """By token."""

    def application(self) -> web.Application:
        application = web.Application(client_max_size=MAX_REQUEST)
        application.add_routes(
            [
                web.post(CHAT, self.answer_chat),
                web.get(MODELS, self.list_models),
                web.post(TRIALS, self.open_trial),
                web.post(USAGE, self.report_usage),
                web.get(HEALTH, self.report_health),
            ]
        )
        return application

    async def open_trial(self, http: web.Request) -> web.Response:
        # Not validated: only our own clients reach this path, since programs can use only CHAT and MODELS.
        data = await http.json()
        token = secrets.token_urlsafe()
        trial = KnownTrial(name=data["name"], task=data["task"], epoch=data["epoch"])
        self._trials[token] = trial
        self.caller.open_trial(trial, data["token_limit"], data["cost_limit"])
        return web.json_response({"token": token})

    async def list_models(self, _http: web.Request) -> web.Response:
        model = {"id": self.settings.name, "object": "model", "created": 0, "owned_by": "pytest-super"}
        return web.json_response({"object": "list", "data": [model]})

    async def report_usage(self, http: web.Request) -> web.Response:
        try:
            trial = self._trial_of(http)
        except Refusal as refusal:
            return refusal.response()
        timeout = (await http.json())["timeout"]
        return web.json_response(asdict(await self.caller.usage(trial, timeout)))

    async def report_health(self, _http: web.Request) -> web.Response:
        return web.json_response({})

    async def answer_chat(self, http: web.Request) -> web.Response:
        try:
            trial, asked = self._trial_of(http), await read_request(http)
            return response_to(asked, await self.caller.complete(trial, asked))
        except Refusal as refusal:
            return refusal.response()
        # `plain` and the JSON writer are recursive.
        except RecursionError:
            return Refusal(400, Failure.INVALID, "the request is nested too deeply").response()
        except web.HTTPException as error:
            return Refusal(400, Failure.INVALID, f"the request cannot be read: {error.reason}").response()
        except Exception as error:
            return internal_error(error).response()

    def _trial_of(self, http: web.Request) -> KnownTrial:
        token = http.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self._trials:
            raise Refusal(UNKNOWN_TRIAL, "unknown_trial", "no trial has this token")
        return self._trials[token]


def internal_error(error: Exception) -> Refusal:
    """A proper response. A client takes a broken one for a dead gateway and would pay for the call again."""
    traceback.print_exception(error)
    # An OSError is a full disk, which every call would meet. Anything else can come from this one request.
    failure = Failure.FATAL if isinstance(error, OSError) else Failure.TRANSIENT
    return Refusal(403, failure, f"the model gateway failed: {error!r}")


def make_server(settings: ModelSettings) -> GatewayServer:
    """The server, with litellm's 300,000 objects exempt from garbage collection.

    They live as long as the process, and scanning them takes a seventh of the import's time.
    """
    gc.disable()
    server = GatewayServer(settings)
    gc.freeze()
    gc.enable()
    return server


async def serve(settings: ModelSettings, socket: Path) -> None:
    """Answer requests until no client is left."""
    server = make_server(settings)
    runner = web.AppRunner(
        server.application(),
        keepalive_timeout=KEEP_ALIVE_SECONDS,
        # Off by default in aiohttp. `Caller.complete` learns by it that a client has left.
        handler_cancellation=True,
        access_log=None,
    )
    await runner.setup()
    await web.UnixSite(runner, str(socket), backlog=BACKLOG).start()
    await until_idle(runner)
    await runner.cleanup()


async def until_idle(runner: web.AppRunner) -> None:
    """Return when the starter is gone and no client has been connected for some seconds."""
    starter_is_gone = threading.Event()

    def watch() -> None:
        sys.stdin.buffer.read()
        starter_is_gone.set()

    # A daemon thread, because its read lasts as long as the starter lives.
    threading.Thread(target=watch, daemon=True).start()
    idle_since = monotonic()
    while monotonic() - idle_since < IDLE_SECONDS:
        await asyncio.sleep(0.2)
        if not starter_is_gone.is_set() or (runner.server is not None and runner.server.connections):
            idle_since = monotonic()


def main() -> None:
    """`python -m pytest_super.model.gateway FOLDER`: serve on FOLDER/socket by FOLDER/settings.json."""
    folder = Path(sys.argv[1])
    socket = folder / "socket"
    socket.unlink(missing_ok=True)
    # Before the socket exists, because a client that finds this gateway hanging kills it by this id.
    (folder / "pid").write_text(str(os.getpid()))
    settings = ModelSettings(**json.loads((folder / "settings.json").read_text()))
    asyncio.run(serve(settings, socket))
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
