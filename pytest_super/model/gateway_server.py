"""The gateway's HTTP server, with litellm behind it; `api` lists its requests.

It speaks each of PROTOCOLS, on a unix socket. Keys, retries, rate limits, budgets and
records are behind it and nowhere else.
"""

from __future__ import annotations

import asyncio
import gc
import hmac
import json
import os
import traceback
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from aiohttp import web

from pytest_super.json_values import plain
from pytest_super.model.api import (
    AUTHORIZATION,
    FACTS,
    TRIAL,
    TWO_LINES,
    USAGE,
    WAIT,
    CallingTrial,
    credentials,
)
from pytest_super.model.caller import Asked, Caller
from pytest_super.model.completion import BudgetSpentError
from pytest_super.model.event_stream import EventStream
from pytest_super.model.failures import Failure, ModelCallError, error_data
from pytest_super.model.protocols.exchange import exchange
from pytest_super.model.protocols.protocol import headers_for, invalid, reading
from pytest_super.model.protocols.registry import ROUTES
from pytest_super.model.rate_limit import FIRST, HIGHEST, RateLimiter
from pytest_super.model.retry import RetryPolicy
from pytest_super.model.settings import SCRIPTED
from pytest_super.model.token_estimate import estimate_tokens

if TYPE_CHECKING:
    import threading

    from aiohttp.typedefs import Handler

    from pytest_super.model.protocols.protocol import Event, Request, WireProtocol
    from pytest_super.model.protocols.route import Route
    from pytest_super.model.provider import ModelProvider
    from pytest_super.model.settings import ModelSettings

# Prompts grow with a trial: 50,000 characters of the last observation, and hundreds of steps before it.
MAX_REQUEST = 256 * 2**20
IDLE_SECONDS = 3.0
# An idle connection of a client is kept for as long as a trial can take.
KEEP_ALIVE_SECONDS = 7 * 86400
# Connections not accepted yet, when a program in each of many workers asks at once.
BACKLOG = 4096


class GatewayServer:
    """Answers HTTP requests of clients that know the token."""

    def __init__(self, caller: Caller, token: str) -> None:
        self.caller = caller
        self._authorization = credentials(token)[AUTHORIZATION].encode()

    def application(self) -> web.Application:
        application = web.Application(client_max_size=MAX_REQUEST, middlewares=[self.authenticate])
        application.add_routes(
            [
                *(web.post(route.path, partial(self.answer_call, route=route)) for route in ROUTES),
                web.post(USAGE, self.report_usage),
                web.get(WAIT, self.report_wait),
            ]
        )
        return application

    @web.middleware
    async def authenticate(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse strangers: code in a local sandbox can connect to the socket, too."""
        given = request.headers.get(AUTHORIZATION, "").encode(errors="replace")
        if not hmac.compare_digest(given, self._authorization):
            return web.Response(status=401)
        return await handler(request)

    async def report_usage(self, http: web.Request) -> web.Response:
        trial, timeout = trial_of(http).name, (await http.json())["timeout"]
        usage = await self.caller.usage(trial, timeout)
        waited = self.caller.ledger.account(trial).waiting.seconds
        failure = self.caller.failures.get(trial)
        return web.json_response({**asdict(usage), "failure": failure, "waited_seconds": waited})

    async def report_wait(self, http: web.Request) -> web.Response:
        return web.Response(text=self.caller.waits_for(trial_of(http).name))

    async def answer_call(self, http: web.Request, route: Route) -> web.StreamResponse:
        stream = EventStream(http)
        try:
            if route.is_count:
                return await self._count(http, ROUTES[route])
            return await self._answer(http, route, stream)
        except (BudgetSpentError, ModelCallError) as error:
            failure = error
        # `plain` and the JSON writer are recursive.
        except RecursionError:
            failure = invalid("the request", "is nested too deeply")
        except web.HTTPException as error:
            failure = invalid("the request", f"cannot be read: {error.reason}")
        except Exception as error:
            failure = internal_error(error)
        # The client has left.
        except asyncio.CancelledError:
            stream.abandon()
            raise
        return await stream.end({"error": error_data(failure)}) if stream.has_begun else refusal(failure)

    async def _answer(self, http: web.Request, route: Route, stream: EventStream) -> web.StreamResponse:
        given, trial, protocol = plain(await read_request(http)), trial_of(http), ROUTES[route]
        with reading():
            request, removed = protocol.accepted(given, is_open=trial.is_open)
            chat = protocol.to_chat(request)
        is_stream = route.wants_stream(given)

        async def relay(events: list[Event]) -> None:
            await stream.relay("".join(protocol.relayed(event, given) for event in events))

        headers = headers_for(protocol, http.headers)
        asked = Asked(protocol, request, chat, headers, relay if is_stream else None)
        answer = await self.caller.complete(trial, asked)
        waited = self.caller.ledger.account(trial.name).waiting.seconds
        facts = {**answer.facts(), "removed": removed, "waited_seconds": waited}
        if trial.is_program:
            facts["exchange"] = exchange(chat["messages"], protocol.said(answer.body, request))
            if not is_stream:
                return two_lines(answer.body, facts)
        if not is_stream:
            return web.json_response(answer.body, headers={FACTS: json.dumps(facts)})
        missing = [protocol.relayed_end] if stream.has_begun else protocol.events(answer.body, given)
        await stream.relay("".join(missing))
        return await stream.end(facts)

    async def _count(self, http: web.Request, protocol: WireProtocol) -> web.Response:
        """By an estimate where the provider does not count."""
        given = plain(await read_request(http))
        with reading():
            request, _ = protocol.accepted(given, is_open=False)
        headers = headers_for(protocol, http.headers)
        counted = await self.caller.provider.count_tokens(protocol, request, headers)
        return web.json_response(counted or protocol.counted(estimate_tokens(request)))


def two_lines(body: Any, facts: dict[str, Any]) -> web.Response:
    return web.Response(text=f"{json.dumps(body)}\n{json.dumps(facts)}\n", content_type=TWO_LINES)


def trial_of(http: web.Request) -> CallingTrial:
    # Not validated: only our own clients write this header, since programs choose only the body.
    return CallingTrial(**json.loads(http.headers[TRIAL]))


async def read_request(http: web.Request) -> Request:
    """Raises ModelCallError, INVALID."""
    try:
        asked = await http.json()
    except (ValueError, RecursionError):
        # RecursionError: a sandbox can send JSON that is nested without end.
        asked = None
    if not isinstance(asked, dict):
        raise invalid("the body", "must be a JSON object")
    return asked


def refusal(error: BudgetSpentError | ModelCallError) -> web.Response:
    # One status for all, because our clients read the code.
    return web.json_response({"error": error_data(error)}, status=400)


def internal_error(error: Exception) -> ModelCallError:
    """A proper response. A client takes a broken one for a dead gateway and would pay for the call again."""
    traceback.print_exception(error)
    # An OSError is a full disk, which every call would meet. Anything else can come from this one request.
    failure = Failure.FATAL if isinstance(error, OSError) else Failure.TRANSIENT
    return ModelCallError(failure, f"the model gateway failed: {error!r}")


def make_provider(settings: ModelSettings) -> ModelProvider:
    """Raises SuperError if a script is wrong."""
    # Imported here: a scripted run must not wait for litellm, whose import takes seconds.
    if settings.name.startswith(SCRIPTED):
        from pytest_super.model.scripted import ScriptedProvider

        return ScriptedProvider(Path(settings.name.removeprefix(SCRIPTED)))
    from pytest_super.model.named_model import NamedModel

    return NamedModel(settings.name, settings.parameters)


def make_caller(settings: ModelSettings) -> Caller:
    """The caller, with litellm's 300,000 objects exempt from garbage collection.

    They live as long as the process, and scanning them takes a seventh of the import's time. Raises OSError
    if calls cannot be booked, SuperError if a script is wrong.
    """
    gc.disable()
    limiter = RateLimiter(max(1, FIRST // settings.machines), max(1, HIGHEST // settings.machines))
    retry = RetryPolicy(limiter, has_answers=lambda: has_answers(Path(settings.calls).parent))
    caller = Caller(settings, make_provider(settings), retry)
    gc.freeze()
    gc.enable()
    return caller


async def serve(settings: ModelSettings, token: str, socket: Path, starter_is_gone: threading.Event) -> None:
    """Answer requests until no client is left."""
    runner = web.AppRunner(
        GatewayServer(make_caller(settings), token).application(),
        keepalive_timeout=KEEP_ALIVE_SECONDS,
        # Off by default in aiohttp. `Caller.complete` learns by it that a client has left.
        handler_cancellation=True,
        access_log=None,
    )
    await runner.setup()
    await listen(runner, socket)
    await until_idle(runner, socket, starter_is_gone)
    await runner.cleanup()


async def listen(runner: web.AppRunner, socket: Path) -> None:
    await web.UnixSite(runner, str(socket), backlog=BACKLOG).start()


def is_cut_off(socket: Path) -> bool:
    """Whether somebody, such as a cleaner of temporary files, has removed the socket, and it alone.

    If the whole folder is gone, clients start another gateway, which has its id there.
    """
    pid = socket.with_name("pid")
    return not socket.exists() and pid.exists() and pid.read_text() == str(os.getpid())


async def until_idle(runner: web.AppRunner, socket: Path, starter_is_gone: threading.Event) -> None:
    """Return when the starter is gone and no client has been connected for some seconds."""
    idle_since = monotonic()
    while monotonic() - idle_since < IDLE_SECONDS:
        await asyncio.sleep(0.2)
        # The folder can disappear meanwhile.
        with suppress(OSError):
            if is_cut_off(socket):
                await listen(runner, socket)
        if not starter_is_gone.is_set() or (runner.server is not None and runner.server.connections):
            idle_since = monotonic()


def has_answers(folder: Path) -> bool:
    """Whether a gateway of the run has booked an answer; each of its machines has a file of calls there."""
    return any(path.stat().st_size for path in folder.glob("calls*.jsonl"))
