"""The gateway: one process per run, through which every call of a model goes.

`gateway_process` starts it, gives it a lock to hold, and writes its settings and its token to its standard
input. It ends when nobody needs it any more: the process that started it keeps its standard input open, and
every client keeps a connection open.
"""

import asyncio
import hmac
import json
import os
import shutil
import sys
import threading
import traceback
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

from pytest_super.json_values import loaded, plain
from pytest_super.kernel.inside.supervision import refuse_tracers
from pytest_super.model.caller import Caller
from pytest_super.model.completion import BudgetSpentError, Failure, ModelCallError, error_data
from pytest_super.model.gateway_process import EVENTS, LAST, WAITS, Line
from pytest_super.model.protocols.exchange import exchange
from pytest_super.model.protocols.protocol import Event, Request, headers_for, invalid, reading
from pytest_super.model.protocols.registry import ROUTES
from pytest_super.model.protocols.route import Route
from pytest_super.model.provider import Asked, ModelProvider, NoModel
from pytest_super.model.retry import HEAD_START, RateLimiter, RetryPolicy
from pytest_super.model.settings import SCRIPTED, CallingTrial, ModelSettings
from pytest_super.model.token_estimate import estimate_tokens
from pytest_super.store.json_lines import to_line

# Connections not accepted yet, when a program in each of many workers asks at once.
BACKLOG = 4096
# Bytes of a request's line.
LONGEST_LINE = 2**20
# Events that come within this time go on together. Each piece takes two milliseconds of processor time on its
# way into a sandbox, and models send up to a hundred events a second.
GATHER_SECONDS = 0.1


class AnswerLines:
    """The lines of one answer. Nothing here waits for a client, which would hold the place of its call."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._gathered = ""
        self._relayed_at = -inf
        self.has_events = False

    def write(self, line: str) -> None:
        """Ignores a client that has left. The cost of its answer still counts."""
        if not self._writer.is_closing():
            self._writer.write(line.encode())

    def relay(self, events: str) -> None:
        """Send events, soon."""
        if not events:
            return
        self.has_events = True
        if not self._gathered:
            self._loop.call_at(self._relayed_at + GATHER_SECONDS, self._flush)
        self._gathered += events

    def end(self, line: str) -> None:
        self._flush()
        self.write(line)

    def _flush(self) -> None:
        if self._gathered:
            self.write(to_line({EVENTS: self._gathered}))
            self._gathered, self._relayed_at = "", self._loop.time()


class GatewayServer:
    """Answers clients that know the token. Belongs to one event loop."""

    def __init__(self, caller: Caller, token: str) -> None:
        self.caller = caller
        self.connections = 0
        self._token_line = f"{token}\n".encode()

    async def listen(self, socket: Path) -> asyncio.Server:
        return await asyncio.start_unix_server(self._serve, socket, limit=LONGEST_LINE, backlog=BACKLOG)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            # Strangers get nothing: code in a local sandbox can connect to the socket, too.
            if hmac.compare_digest(await reader.readline(), self._token_line):
                await self._serve_client(reader, AnswerLines(writer))
            writer.close()
            await writer.wait_closed()
        # A client has left in the middle, or a stranger's line has no end.
        except (OSError, ValueError, asyncio.IncompleteReadError):
            writer.close()
        finally:
            self.connections -= 1

    async def _serve_client(self, reader: asyncio.StreamReader, lines: AnswerLines) -> None:
        """Answer, with signs of life before, until the client leaves: it sends nothing else."""
        asked = json.loads(await reader.readline())
        body = await reader.readexactly(asked["size"])
        answer = asyncio.ensure_future(self._answer(asked, body, lines))
        leaving = asyncio.ensure_future(reader.read())
        done: set[asyncio.Future[Any]] = set()
        while not done:
            done, _ = await asyncio.wait(
                {answer, leaving}, timeout=asked["sign_of_life"], return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                lines.write(to_line({WAITS: self.caller.waits_for(asked["trial"]["name"])}))
        if answer in done:
            lines.end(answer.result())
        answer.cancel()
        leaving.cancel()

    async def _answer(self, asked: Line, body: bytes, lines: AnswerLines) -> str:
        """The last line."""
        try:
            return to_line({LAST: await self._result(asked, body, lines)})
        except (BudgetSpentError, ModelCallError) as error:
            failure = error
        # `plain` and the JSON writer are recursive.
        except RecursionError:
            failure = invalid("the request", "is nested too deeply")
        except Exception as error:
            # A client takes a broken answer for a dead gateway and would pay for the call again.
            traceback.print_exception(error)
            # An OSError is a full disk, which every call would meet. Others can come from this one request.
            kind = Failure.FATAL if isinstance(error, OSError) else Failure.TRANSIENT
            failure = ModelCallError(kind, f"the model gateway failed: {error!r}")
        return to_line({LAST: {"error": error_data(failure)}})

    async def _result(self, asked: Line, body: bytes, lines: AnswerLines) -> Line:
        # Not validated: only our own clients write the line, since programs choose only the body.
        trial = CallingTrial(**asked["trial"])
        if asked["route"] is None:
            return await self.caller.usage(trial.name, asked["timeout"])
        route, given = Route(**asked["route"]), plain(loaded(body))
        if not isinstance(given, dict):
            raise invalid("the body", "must be a JSON object")
        protocol = ROUTES[route]
        if route.is_count:
            with reading():
                request, _ = protocol.accepted(given, is_open=False)
            return {"body": protocol.counted(estimate_tokens(request))}
        return await self._call(trial, headers_for(protocol, asked["headers"]), route, given, lines)

    async def _call(
        self, trial: CallingTrial, headers: dict[str, str], route: Route, given: Request, lines: AnswerLines
    ) -> Line:
        """The facts of an answer, and its body if that has not gone as events."""
        protocol = ROUTES[route]
        with reading():
            request, removed = protocol.accepted(given, is_open=trial.is_open)
            chat = protocol.to_chat(request)
        is_stream = route.wants_stream(given)

        async def relay(events: list[Event]) -> None:
            self.caller.retry.limiter.end_head_start()
            lines.relay("".join(protocol.relayed(event, given) for event in events))

        asked = Asked(protocol, request, chat, headers=headers, relay=relay if is_stream else None)
        answer = await self.caller.complete(trial, asked)
        waited = self.caller.ledger.account(trial.name).waiting.seconds
        facts = {**answer.facts(), "removed": removed, "waited_seconds": waited}
        if trial.is_program:
            facts["exchange"] = exchange(chat["messages"], protocol.said(answer.body, request))
        if not is_stream:
            return {**facts, "body": answer.body}
        missing = [protocol.relayed_end] if lines.has_events else protocol.events(answer.body, given)
        lines.relay("".join(missing))
        return facts


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
    calls = Path(settings.calls)
    retry = RetryPolicy(RateLimiter(head_start=HEAD_START), has_answers=lambda: calls.stat().st_size > 0)
    server = GatewayServer(Caller(settings, make_provider(settings), retry), token)
    await server.listen(socket)
    idle_since = monotonic()
    while monotonic() - idle_since < IDLE_SECONDS:
        await asyncio.sleep(0.2)
        if not starter_is_gone.is_set() or server.connections:
            idle_since = monotonic()


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


if __name__ == "__main__":
    main()
