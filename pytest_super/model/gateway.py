"""The gateway: one process per machine and run through which every call of a model goes.

An OpenAI-compatible server on a unix socket, with litellm behind it. Keys, retries, rate limits, budgets and
records are here and nowhere else. It is started by `launch`, which leaves it a lock to hold, and
ends when nobody needs it: the process that started it holds its standard input open, and every client a
connection.

    POST /v1/chat/completions    by the bearer token of a trial; what it used is in the header FACTS, since
                                 the answer may be passed on unread
    GET  /v1/models              the model of the run, whatever a request names
    POST /super/books            what a trial has used, once its calls are no longer under way
    GET  /super/alive            a sign of life
    POST /super/trials           a trial's name and limits; gives its token
"""

from __future__ import annotations

import asyncio
import gc
import json
import secrets
import shutil
import sys
import threading
import traceback
from collections import defaultdict
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from aiohttp import web

from pytest_super.model.answer import NOTHING, ModelCallError, Trouble, plain
from pytest_super.model.bound import count_characters
from pytest_super.model.call import Call
from pytest_super.model.completion import BudgetSpentError
from pytest_super.model.facts import call_facts, facts_of_nothing
from pytest_super.model.launch import BOOKS
from pytest_super.model.ledger import Ledger, RunCostError
from pytest_super.model.liveness import ALIVE
from pytest_super.model.patience import Patience
from pytest_super.model.replies import Refusal, read_request, refusal_of, response_to
from pytest_super.model.settings import SCRIPTED, ModelSettings

if TYPE_CHECKING:
    from pytest_super.model.answer import Answer, Provider, Request
    from pytest_super.model.completion import Used

    Booked = tuple[dict[str, Any], dict[str, Any]]
    """The body of an answer, and what is told of the call."""

# Prompts grow with a trial: 50,000 characters of the last observation and hundreds of steps before it.
MAX_REQUEST = 256 * 2**20
IDLE_SECONDS = 3.0
# How long all other calls wait for the end of the very first.
HEAD_START = 5.0
# Connections that nobody has taken yet: those of all workers, when a program in each asks at once.
MOST_WAITING = 4096
NO_PRICE = (
    "the price of {model} is not known, so --super-max-cost cannot be kept: leave it out, or tell the price "
    "by --super-model-arg=input_cost_per_token=X and output_cost_per_token=Y"
)


@dataclass(frozen=True, kw_only=True)
class KnownTrial:
    """A trial that has a token."""

    name: str
    """`TASK/EPOCH.ATTEMPT`, which no other trial of the run has."""
    task: str
    epoch: int


class Gateway:
    """The server's state and its answers."""

    def __init__(self, settings: ModelSettings) -> None:
        """Raises OSError where calls cannot be booked, SuperError for a script that is wrong."""
        self.settings = settings
        self.ledger = Ledger(Path(settings.calls), settings.max_cost)
        self.provider = make_provider(settings)
        self.patience = Patience()
        self.trials: dict[str, KnownTrial] = {}
        self.stopped: Refusal | None = None
        self.under_way: dict[str, set[Call]] = defaultdict(set)
        """By the names of trials."""
        self.has_begun = False
        self.first_ended = asyncio.Event()

    def application(self) -> web.Application:
        application = web.Application(client_max_size=MAX_REQUEST)
        application.add_routes(
            [
                web.post("/super/trials", self.open_trial),
                web.post("/v1/chat/completions", self.answer_chat),
                web.get("/v1/models", self.list_models),
                web.post(BOOKS, self.tell_books),
                web.get(ALIVE, self.tell_alive),
            ]
        )
        return application

    async def open_trial(self, http: web.Request) -> web.Response:
        data = await http.json()
        token = secrets.token_urlsafe()
        self.trials[token] = KnownTrial(name=data["name"], task=data["task"], epoch=data["epoch"])
        account = self.ledger.account(data["name"])
        account.tokens.allow(data["token_limit"])
        account.cost.allow(data["cost_limit"])
        return web.json_response({"token": token})

    async def list_models(self, _http: web.Request) -> web.Response:
        model = {"id": self.settings.name, "object": "model", "created": 0, "owned_by": "pytest-super"}
        return web.json_response({"object": "list", "data": [model]})

    async def tell_books(self, http: web.Request) -> web.Response:
        try:
            trial = self.trial_of(http)
        except Refusal as refusal:
            return refusal.response()
        if calls := self.under_way[trial.name]:
            await asyncio.wait([call.made for call in calls], timeout=(await http.json())["patience"])
        return web.json_response(asdict(self.ledger.account(trial.name).used))

    async def tell_alive(self, _http: web.Request) -> web.Response:
        return web.json_response({})

    async def answer_chat(self, http: web.Request) -> web.Response:
        try:
            trial, asked = self.trial_of(http), await read_request(http)
            return response_to(asked, *await self.complete(trial, asked))
        except Refusal as refusal:
            return refusal.response()
        except RecursionError:
            return Refusal(400, Trouble.INVALID, "the request is nested too deeply").response()
        except web.HTTPException as error:
            return Refusal(400, Trouble.INVALID, f"the request cannot be taken: {error.reason}").response()
        except Exception as error:
            # A client would take a broken answer for a dead gateway, and pay the call again.
            traceback.print_exc()
            # A full disk is so for all; what else fails may come from this one request.
            trouble = Trouble.FATAL if isinstance(error, OSError) else Trouble.TRANSIENT
            return Refusal(403, trouble, f"the model gateway failed: {error!r}").response()

    def trial_of(self, http: web.Request) -> KnownTrial:
        token = http.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self.trials:
            raise Refusal(401, "unknown_trial", "no trial has this token")
        return self.trials[token]

    async def complete(self, trial: KnownTrial, asked: Request) -> Booked:
        """The answer to one request. Raises Refusal.

        A client that leaves while the provider is asked has made the call all the same: it goes on, and is
        booked. What waits or would be tried again is not made any more.
        """
        request = self.prepare(trial, asked)
        call = Call(
            trial=trial.name,
            task=trial.task,
            request=request,
            characters=count_characters(request),
            bound=self.provider.bound(request),
        )
        call.made = asyncio.ensure_future(self.make_call(call))
        self.under_way[call.trial].add(call)
        call.made.add_done_callback(lambda _: self.end_call(call))
        try:
            return await asyncio.shield(call.made)
        except asyncio.CancelledError:
            call.leave()
            raise

    def end_call(self, call: Call) -> None:
        self.under_way[call.trial].discard(call)
        self.first_ended.set()
        if not call.made.cancelled():
            call.made.exception()  # looked at, since nobody else may

    async def make_call(self, call: Call) -> Booked:
        await self.let_first_call_go()
        try:
            answer = await self.patience.call(
                partial(self.attempt, call),
                partial(self.ledger.reserve, call.trial, call.characters, call.bound),
            )
        except (BudgetSpentError, RunCostError, ModelCallError) as error:
            refusal = refusal_of(error)
            self.record(call, {"error": {"code": refusal.code, "message": str(refusal)}})
            raise refusal from None
        self.record(call, answer.body)
        if self.stopped is not None:
            raise self.stopped
        return answer.body, {**call_facts(answer, call.started, call.seconds), **asdict(call.used)}

    async def attempt(self, call: Call) -> Answer:
        """The provider's answer, booked. Raises ModelCallError, and Refusal when the run has stopped."""
        if self.stopped is not None:
            raise self.stopped
        account = self.ledger.account(call.trial)
        try:
            with call.asking():
                answer = await self.provider.complete(call.request, task=call.task, call=account.answered + 1)
        except ModelCallError as error:
            account.answered += error.is_final
            if error.used != NOTHING:
                self.book(call, error.used, facts_of_nothing(error.used), self.settings.name)
            raise
        facts = call_facts(replace(answer, attempts=call.attempts), call.started, call.seconds)
        self.book(call, answer.used, {"characters": call.characters, **facts}, answer.model)
        return answer

    def book(self, call: Call, used: Used, facts: dict[str, Any], model: str) -> None:
        call.used += used
        self.ledger.charge(call.trial, facts, call.bound)
        if used.cost_usd is None and self.settings.max_cost is not None:
            self.stopped = Refusal(403, Trouble.FATAL, NO_PRICE.format(model=model))

    async def let_first_call_go(self) -> None:
        """What is wrong with the key or the name is told soon, and by one call as well as by sixteen."""
        if self.has_begun and not self.first_ended.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.first_ended.wait(), HEAD_START)
        self.has_begun = True

    def prepare(self, trial: KnownTrial, asked: Request) -> Request:
        """The request as it is kept; epochs differ by their seed."""
        request: Request = {**plain(asked), **self.settings.parameters, "model": self.settings.name}
        if self.provider.takes_seed:
            request["seed"] = trial.epoch if request.get("seed") is None else request["seed"]
        return request

    def record(self, call: Call, response: dict[str, Any]) -> None:
        """Append the whole call to the trial's file, where the user asks for that."""
        if self.settings.record is None:
            return
        path = Path(self.settings.record, f"{call.trial}.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {"started": call.started, "request": call.request, "response": response}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(data) + "\n")


def make_provider(settings: ModelSettings) -> Provider:
    if settings.name.startswith(SCRIPTED):
        from pytest_super.model.scripted import ScriptedProvider

        return ScriptedProvider(Path(settings.name.removeprefix(SCRIPTED)))
    from pytest_super.model.provider import LitellmProvider

    return LitellmProvider(settings.name, settings.parameters)


def make_gateway(settings: ModelSettings) -> Gateway:
    """litellm's objects, a third of a million, stay: looking through them time and again is dear.

    It is a seventh of the time that their import takes, too.
    """
    gc.disable()
    gateway = Gateway(settings)
    gc.freeze()
    gc.enable()
    return gateway


async def serve(settings: ModelSettings, socket: Path) -> None:
    """Answer until nobody is there any more."""
    gateway = make_gateway(settings)
    # Connections are leases: a client keeps one open, and does not speak on it for as long as a trial takes.
    runner = web.AppRunner(
        gateway.application(), keepalive_timeout=7 * 86400, handler_cancellation=True, access_log=None
    )
    await runner.setup()
    await web.UnixSite(runner, str(socket), backlog=MOST_WAITING).start()
    await until_idle(runner)
    await runner.cleanup()


async def until_idle(runner: web.AppRunner) -> None:
    """Returns when the starter is gone and no client was connected for some seconds."""
    starter_is_gone = threading.Event()

    def watch() -> None:
        sys.stdin.buffer.read()
        starter_is_gone.set()

    # A daemon, so that nothing waits for a starter that lives on.
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
    settings = ModelSettings(**json.loads((folder / "settings.json").read_text()))
    asyncio.run(serve(settings, socket))
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
